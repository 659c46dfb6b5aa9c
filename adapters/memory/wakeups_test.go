package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// heard takes what a channel of wake-ups has to give when nothing else moves.
func heard(wakeups <-chan core.Shard) []core.Shard {
	var list []core.Shard
	for {
		synctest.Wait()
		select {
		case shard, ok := <-wakeups:
			if !ok {
				return list
			}
			list = append(list, shard)
		default:
			return list
		}
	}
}

func entry(id string, when core.When) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: []byte("changed")}, When: when}
}

func TestWakeupsTellOfAnEarlierHead(t *testing.T) {
	shard := core.Shard{Queue: "orders"}
	step := ports.JobStep{Shard: shard}
	hour, minute := core.In(time.Hour), core.In(time.Minute)
	tests := []struct {
		name   string
		before func(l *lane)
		do     func(l *lane)
		wakes  bool
	}{
		{"a push to an empty shard", nil, func(l *lane) { l.push(entry("a", core.When{})) }, true},
		{"a push for later to an empty shard", nil, func(l *lane) { l.push(entry("a", hour)) }, true},
		{
			"a push before the head",
			func(l *lane) { l.push(entry("a", hour)) },
			func(l *lane) { l.push(entry("b", minute)) }, true,
		},
		{
			"a push behind the head",
			func(l *lane) { l.push(entry("a", minute)) },
			func(l *lane) { l.push(entry("b", hour)) }, false,
		},
		{
			"a push for a claimed id",
			func(l *lane) { l.push(entry("a", core.When{})); l.turn(1) },
			func(l *lane) { l.push(entry("a", core.When{})) }, false,
		},
		{
			"a push to a paused queue",
			func(l *lane) { l.ok(l.store.Pause(l.t.Context(), "orders")) },
			func(l *lane) { l.push(entry("a", core.When{})) }, false,
		},
		{
			"a resume",
			func(l *lane) { l.ok(l.store.Pause(l.t.Context(), "orders")); l.push(entry("a", core.When{})) },
			func(l *lane) { l.ok(l.store.Resume(l.t.Context(), "orders")) }, true,
		},
		{
			"a resume of what was not paused",
			func(l *lane) { l.push(entry("a", core.When{})) },
			func(l *lane) { l.ok(l.store.Resume(l.t.Context(), "orders")) }, false,
		},
		{
			"an expedited job",
			func(l *lane) { l.push(entry("a", hour)) },
			func(l *lane) { _, err := l.store.Expedite(l.t.Context(), step); l.ok(err) }, true,
		},
		{
			"an expedited job that was due",
			func(l *lane) { l.push(entry("a", core.When{})) },
			func(l *lane) { _, err := l.store.Expedite(l.t.Context(), step); l.ok(err) }, false,
		},
		{
			"a cancelled job",
			func(l *lane) { l.push(entry("a", core.When{})); l.turn(1) },
			func(l *lane) { l.cancel("a") }, true,
		},
		{
			"a job cancelled again",
			func(l *lane) { l.push(entry("a", core.When{})); l.turn(1); l.cancel("a") },
			func(l *lane) { l.cancel("a") }, false,
		},
		{
			"a cancel of what is not claimed",
			func(l *lane) { l.push(entry("a", core.When{})) },
			func(l *lane) { l.cancel("a") }, false,
		},
		{
			"a settlement outside a turn that puts back",
			func(l *lane) { l.push(entry("a", core.When{})); l.turn(1) },
			func(l *lane) {
				mark := core.Mark{Token: l.lease.Token, Number: l.number}
				back := core.Settlement{ID: "a", Mark: mark, Rest: core.Requeue}
				l.ok(l.store.Settle(l.t.Context(), shard, []core.Settlement{back}))
			}, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := work(t, memory.New(memory.Options{}), "orders", 1)
				if tt.before != nil {
					tt.before(l)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wakeups, err := l.store.Wakeups(ctx, []core.Shard{shard})
				l.ok(err)
				tt.do(l)
				if woken := len(heard(wakeups)) > 0; woken != tt.wakes {
					t.Errorf("woken: %t, want %t", woken, tt.wakes)
				}
			})
		})
	}
}

func (l *lane) cancel(id string) {
	l.t.Helper()
	_, err := l.store.Cancel(l.t.Context(), ports.CancelRequest{Shard: l.shard, IDs: []string{id}})
	l.ok(err)
}

// Nobody waits for a reader, and what he missed is told once for each shard. The
// first may come twice: it was in flight when it was due again.
func TestWakeupsCoalesceForASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 4
		store := memory.New(memory.Options{})
		l := work(t, store, "orders", shards)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wakeups, err := store.Open().Wakeups(ctx, core.Shards("orders", shards))
		l.ok(err)
		for i, e := range entries(1000) {
			e.When = core.In(time.Hour - time.Duration(i)*time.Second)
			l.push(e)
		}
		times := map[core.Shard]int{}
		for _, shard := range heard(wakeups) {
			times[shard]++
		}
		most := 2
		for _, shard := range core.Shards("orders", shards) {
			if n := times[shard]; n < 1 || n > most {
				t.Errorf("%v was told of %d times, want once", shard, n)
			} else if n == 2 {
				most = 1
			}
		}
	})
}

func TestWakeupsAreOfTheShardsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := work(t, memory.New(memory.Options{}), "orders", 4)
		asked := core.Shard{Queue: "orders", Index: 2}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wakeups, err := l.store.Wakeups(ctx, []core.Shard{asked, asked})
		l.ok(err)
		l.push(entries(100)...)
		if diff := cmp.Diff([]core.Shard{asked}, heard(wakeups)); diff != "" {
			t.Errorf("woken for (-want +got):\n%s", diff)
		}
	})
}

func TestWakeupsEndWithTheirContext(t *testing.T) {
	for name, pushes := range map[string]int{"idle": 0, "with a wake-up that nobody takes": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := work(t, memory.New(memory.Options{}), "orders", 4)
				ctx, cancel := context.WithCancel(t.Context())
				wakeups, err := l.store.Wakeups(ctx, core.Shards("orders", 4))
				l.ok(err)
				l.push(entries(pushes)...)
				synctest.Wait()
				cancel()
				synctest.Wait()
				if shard, open := <-wakeups; open {
					t.Errorf("the channel gives %v after its context ended, want it closed", shard)
				}
				l.push(entry("late", core.In(-time.Hour)))
			})
		})
	}
}

func TestWakeupsRefuse(t *testing.T) {
	l := work(t, memory.New(memory.Options{}), "orders", 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		shard core.Shard
		want  error
	}{
		{"an unknown queue", t.Context(), core.Shard{Queue: "mails"}, ports.ErrUnknownQueue},
		{"a shard that is not there", t.Context(), core.Shard{Queue: "orders", Index: 1}, ports.ErrInvalidRequest},
		{"a context that ended", ended, core.Shard{Queue: "orders"}, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := l.store.Wakeups(tt.ctx, []core.Shard{tt.shard}); !errors.Is(err, tt.want) {
				t.Errorf("Wakeups: %v, want %v", err, tt.want)
			}
		})
	}
}
