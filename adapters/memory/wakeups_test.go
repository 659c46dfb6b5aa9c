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

// wakeCase is something that happens to the shard a reader listens to.
type wakeCase struct {
	name   string
	before func(l *lane)
	do     func(l *lane)
}

func pushIn(id string, d time.Duration) func(l *lane) {
	return func(l *lane) { l.push(entry(id, core.In(d))) }
}

func pushAndClaim(l *lane) { l.push(entry("a", core.When{})); l.turn(1) }

func cancelA(l *lane) { l.cancel("a") }

func pause(l *lane) { l.ok(l.store.Pause(l.t.Context(), "orders")) }

func resume(l *lane) { l.ok(l.store.Resume(l.t.Context(), "orders")) }

func expedite(l *lane) {
	_, err := l.store.Expedite(l.t.Context(), ports.JobStep{Shard: l.shard})
	l.ok(err)
}

func putBack(l *lane) {
	mark := core.Receipt{Token: l.lease.Token, Number: l.number}
	back := core.Settlement{ID: "a", Receipt: mark, Rest: core.Requeue}
	l.ok(l.store.Settle(l.t.Context(), l.shard, []core.Settlement{back}))
}

func TestWakeupsTellOfAnEarlierHead(t *testing.T) {
	testWakeups(t, true, []wakeCase{
		{"a push to an empty shard", nil, pushIn("a", 0)},
		{"a push for later to an empty shard", nil, pushIn("a", time.Hour)},
		{"a push before the head", pushIn("a", time.Hour), pushIn("b", time.Minute)},
		{"a resume", func(l *lane) { pause(l); l.push(entry("a", core.When{})) }, resume},
		{"an expedited job", pushIn("a", time.Hour), expedite},
		{"a cancelled job", pushAndClaim, cancelA},
		{"a settlement outside a turn that puts back", pushAndClaim, putBack},
	})
}

func TestWakeupsAreSilentWithoutNews(t *testing.T) {
	testWakeups(t, false, []wakeCase{
		{"a push behind the head", pushIn("a", time.Minute), pushIn("b", time.Hour)},
		{"a push for a claimed id", pushAndClaim, pushIn("a", 0)},
		{"a push to a paused queue", pause, pushIn("a", 0)},
		{"a resume of what was not paused", pushIn("a", 0), resume},
		{"an expedited job that was due", pushIn("a", 0), expedite},
		{"a job cancelled again", func(l *lane) { pushAndClaim(l); cancelA(l) }, cancelA},
		{"a cancel of what is not claimed", pushIn("a", 0), cancelA},
	})
}

func testWakeups(t *testing.T, wakes bool, cases []wakeCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := work(t, memory.New(memory.Options{}), "orders", 1)
				if c.before != nil {
					c.before(l)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wakeups, err := l.store.Wakeups(ctx, []core.Shard{l.shard})
				l.ok(err)
				c.do(l)
				if woken := len(heard(wakeups)) > 0; woken != wakes {
					t.Errorf("woken: %t, want %t", woken, wakes)
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
