package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// ticking stores schedules of a queue, with their next ticks at times after the clock's.
func (s *fixture) ticking(queue string, shards int, next ...time.Duration) {
	s.t.Helper()
	spec, err := core.IntervalSpec(time.Hour, 0)
	if err != nil {
		s.t.Fatal(err)
	}

	for at, in := range next {
		key := core.ScheduleKey{ID: fmt.Sprint(at), Name: "hourly"}
		change := ports.ScheduleChange{ScheduleKey: key, Schedule: &core.Schedule{
			ScheduleKey: key, Recurrence: core.Recurrence{Spec: spec}, Next: core.InstantOf(epoch.Add(in)), Revision: 1,
		}}

		r := ports.ChangeSchedulesRequest{
			Shard:      core.Shard{Queue: queue, Index: core.ShardOf(key.ID, shards)},
			Shards:     shards,
			Generation: 1,
			Changes:    []ports.ScheduleChange{change},
		}
		if _, err := s.store.ChangeSchedules(s.t.Context(), r); err != nil {
			s.t.Fatal(err)
		}
	}
}

// The ticks of all queues take one call. Queues without a next tick are left out.
func TestLateTicks(t *testing.T) {
	s := newFixture(t)
	if got, err := s.LateTicks(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("without schedules: %v, %v", got, err)
	}
	for _, queue := range []string{"mails", "stopped"} {
		s.declare(queue, 5)
	}
	s.ticking("orders", fixtureShards, time.Hour, -3*time.Minute, -time.Minute, time.Minute)
	s.ticking("mails", 5, time.Hour)
	s.ticking("stopped", 5, -time.Hour)
	if err := s.Pause(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}

	calls := map[string]int{}
	s.intercept().before = func(method string) error { calls[method]++; return nil }
	got, err := s.LateTicks(t.Context())
	want := map[string]inspect.LateTick{"orders": {Late: 3 * time.Minute, Scheduled: true}, "mails": {Scheduled: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"Queues": 1, "Ticks": 1}, calls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
}

// awayTicks is a store that can't reach shard orders/1.
type awayTicks struct{ inspect.Store }

func (s awayTicks) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	reply, err := s.Store.Ticks(ctx, r)
	away := core.Shard{Queue: "orders", Index: 1}
	reply.Shards[slices.Index(r.Shards, away)], reply.Unreached = ports.ShardTicks{}, []core.Shard{away}
	return reply, err
}

func TestLateTicksOfAStoreThatFails(t *testing.T) {
	s := newFixture(t)
	s.declare("old", 1)
	s.declare("mails", 1)
	s.ticking("mails", 1, -time.Minute)
	want := map[string]inspect.LateTick{"mails": {Late: time.Minute, Scheduled: true}}

	got, err := inspect.New(&forgetful{s.store, "old"}, inspect.Options{}).LateTicks(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("while a queue is forgotten: %v (-want +got):\n%s", err, diff)
	}

	got, err = inspect.New(awayTicks{s.store}, inspect.Options{}).LateTicks(t.Context())
	isPartial(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("while another shard is away (-want +got):\n%s", diff)
	}

	boom := errors.New("boom")
	s.intercept().before = func(method string) error {
		if method == "Ticks" {
			return boom
		}
		return nil
	}
	if got, err := s.LateTicks(t.Context()); !errors.Is(err, boom) || got != nil {
		t.Errorf("%v, %v; want the store's error", got, err)
	}
}
