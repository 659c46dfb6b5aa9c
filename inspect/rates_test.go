package inspect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestTheRateOfAQueueIsShownWithItsLimiters(t *testing.T) {
	s := newFixture(t)
	idle := inspect.QueueRate{
		Queue: "orders", Now: epoch,
		Limiters: []inspect.LimiterState{{Queue: "orders", NextSlot: epoch}},
	}
	checkRate(t, s, idle)

	s.declare("mail", 1)

	for name, rate := range map[string]string{"blue": "6/1m0s", "red": "1/1h0m0s", "grey": "", "new": "6/fortnight"} {
		s.serveAs(ports.Node{Owner: name, Name: name, Status: ports.NodeStatus{
			Queues: []ports.QueueStatus{{Queue: "mail", Rate: "9/1s"}, {Queue: "orders", Rate: rate}},
		}})
	}
	err := s.store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: core.Settings{
		Version: 1,
		Set:     []core.Setting{{Name: core.SettingRate, Value: "6/1m0s", By: "ann", At: core.InstantOf(epoch)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.starts(1)
	s.take(ports.Take{Key: "late", Rate: core.Rate{Count: 6, Per: time.Minute}, Use: 2})
	if err := s.StopRate(t.Context(), "orders", "tenant", time.Hour); err != nil {
		t.Fatal(err)
	}

	nodes, err := s.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits, err := s.RateWaits(t.Context(), nodes)
	if diff := cmp.Diff(map[string]inspect.RateWait{
		"orders": {Rate: core.Rate{Count: 6, Per: time.Minute}, Wait: 10 * time.Second},
		"mail":   {Rate: core.Rate{Count: 9, Per: time.Second}},
	}, waits); diff != "" || err != nil {
		t.Errorf("the waits: %v %s", err, diff)
	}
	if waits, err := s.RateWaits(t.Context(), nodes, "mail", "none"); len(waits) != 1 || waits["mail"].Rate.Count != 9 {
		t.Errorf("the waits of one queue: %+v, %v", waits, err)
	}

	got, err := s.Rate(t.Context(), "orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, of := range got.Servers {
		for _, server := range of.Servers {
			names[server] = of.Rate
		}
	}
	want := map[string]string{"blue": "6/1m0s", "red": "1/1h0m0s", "grey": "none", "new": "6/fortnight"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("servers by rate: %s", diff)
	}

	got.Servers = nil
	if diff := cmp.Diff(inspect.QueueRate{
		Queue: "orders", Rate: "6/1m0s", Set: "6/1m0s", SetBy: "ann", SetAt: epoch, Now: epoch,
		Limiters: []inspect.LimiterState{
			{Queue: "orders", Key: "tenant", Stopped: epoch.Add(time.Hour)},
			{
				Queue: "orders", NextSlot: epoch.Add(10 * time.Second),
				EvenPace: epoch.Add(10 * time.Second), LastSlot: epoch,
			},
			{Queue: "orders", Key: "late", EvenPace: epoch.Add(time.Microsecond), LastSlot: epoch},
		},
	}, got); diff != "" {
		t.Error(diff)
	}

	one, err := s.Rate(t.Context(), "orders", 1)
	keys := keysOf(&one)
	if err != nil || !slices.Equal(keys, []string{"tenant", ""}) {
		t.Errorf("with a limit of 1 the limiters are %q, %v; want that furthest ahead and the whole queue", keys, err)
	}
}

func checkRate(t *testing.T, s *fixture, want inspect.QueueRate) {
	t.Helper()
	got, err := s.Rate(t.Context(), "orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func keysOf(q *inspect.QueueRate) (keys []string) {
	for _, l := range q.Limiters {
		keys = append(keys, l.Key)
	}
	return keys
}

// A look takes no slot: after many looks the next take is granted at once.
func TestALookAtARateTakesNoSlot(t *testing.T) {
	s := newFixture(t)
	s.rate("6/1m0s")
	s.pushAll("x")
	for range 3 {
		if _, err := s.Rate(t.Context(), "orders", 0); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Why(t.Context(), "orders", "x"); err != nil || v.Reason != inspect.IsNext ||
			v.Rate != "6/1m0s" || !v.NextSlot.Equal(v.Now) {
			t.Fatalf("%v at the rate %q, next %v, %v", v.Reason, v.Rate, v.NextSlot, err)
		}
	}
	s.starts(1)
	if v, err := s.Why(t.Context(), "orders", "x"); err != nil || v.Reason != inspect.AtRate {
		t.Errorf("%v, %v; want that it waits for the rate", v.Reason, err)
	}
}

func TestARateIsStoppedAndResumedByHand(t *testing.T) {
	s := newFixture(t)
	s.rate("6/1m0s")
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann", Reason: "the bank is away"})
	if err := s.StopRate(ctx, "orders", "", 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	until := epoch.Add(10 * time.Minute)
	if got, err := s.Rate(t.Context(), "orders", 0); err != nil || !got.Limiters[0].Stopped.Equal(until) ||
		!got.Limiters[0].NextSlot.Equal(until) {
		t.Errorf("%+v, %v; want a stop until %v", got.Limiters, err, until)
	}

	if err := s.ResumeRate(ctx, "orders", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Rate(t.Context(), "orders", 0); err != nil || !got.Limiters[0].Stopped.IsZero() ||
		got.Limiters[0].NextSlot.After(epoch) {
		t.Errorf("%+v, %v; want no stop", got.Limiters, err)
	}

	var verbs []string
	for a, err := range s.Actions(t.Context(), inspect.ActionsOptions{Queue: "orders"}) {
		if err != nil {
			t.Fatal(err)
		}
		verbs = append(verbs, a.Actor.Name+" "+a.Verb+" "+a.Actor.Reason)
	}
	want := []string{"ann resume rate the bank is away", "ann stop rate for 10m0s the bank is away"}
	if !slices.Equal(verbs, want) {
		t.Errorf("the audit has %q, want %q", verbs, want)
	}
}

// A stop of a queue that servers run without a rate would have no effect, so it is refused.
func TestAStopWithoutEffectIsRefused(t *testing.T) {
	s := newFixture(t)
	if err := s.StopRate(t.Context(), "orders", "", time.Minute); err != nil {
		t.Errorf("a stop before any server runs returned %v", err)
	}
	s.rate("")
	for _, d := range []time.Duration{time.Minute, -1, 0, core.MaxStop + 1} {
		if err := s.StopRate(t.Context(), "orders", "", d); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("a stop of %v returned %v, want ErrInvalidOptions", d, err)
		}
	}
	if err := s.ResumeRate(t.Context(), "orders", ""); err != nil {
		t.Errorf("the end of a stop returned %v", err)
	}
}

// A stop does not need the list of servers.
func TestARateIsStoppedWithoutTheListOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		i := inspect.New(noNodes{s.store}, inspect.Options{})
		if err := i.StopRate(t.Context(), "orders", "", time.Hour); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Rate(t.Context(), "orders", 0); err != nil || got.Limiters[0].Stopped.IsZero() {
			t.Errorf("%+v, %v; want a stop", got.Limiters, err)
		}
	})
}

// noLimits is a store whose limiters can't be read.
type noLimits struct{ inspect.Store }

func (noLimits) Limits(_ context.Context, _ ports.LimitsRequest) (ports.LimitsReply, error) {
	return ports.LimitsReply{}, errors.New("away")
}

// Without its limiter a verdict does not claim that the rate keeps a job from running.
func TestWhyWithoutTheLimiter(t *testing.T) {
	s := newFixture(t)
	s.rate("6/1m0s")
	s.starts(1)
	s.pushAll("x")
	v, err := inspect.New(noLimits{s.store}, inspect.Options{}).Why(t.Context(), "orders", "x")
	if err != nil || v.Reason != inspect.IsNext || v.Rate != "6/1m0s" || !v.NextSlot.IsZero() {
		t.Errorf("%v, rate %q, next %v, %v; want that it is next", v.Reason, v.Rate, v.NextSlot, err)
	}
}
