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

// received takes the wake-ups of a channel once all goroutines are idle.
func received(wakeups <-chan core.Shard) []core.Shard {
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
	before func(h *holder)
	do     func(h *holder)
}

func pushIn(id string, d time.Duration) func(h *holder) {
	return func(h *holder) { h.push(entry(id, core.In(d))) }
}

func pushAndClaim(h *holder) { h.push(entry("a", core.When{})); h.turn(1) }

func cancelA(h *holder) { h.cancel("a") }

func pause(h *holder) { h.ok(h.store.Pause(h.t.Context(), "orders")) }

func resume(h *holder) { h.ok(h.store.Resume(h.t.Context(), "orders")) }

func expedite(h *holder) {
	_, err := h.store.Expedite(h.t.Context(), ports.JobStep{Shard: h.shard, IDs: []string{"a"}})
	h.ok(err)
}

func putBack(h *holder) {
	receipt := core.Receipt{Token: h.lease.Token, Number: h.number}
	back := core.Settlement{ID: "a", Receipt: receipt, Rest: core.Requeue}
	h.ok(h.store.Settle(h.t.Context(), h.shard, []core.Settlement{back}))
}

func TestWakeupsReportAnEarlierHead(t *testing.T) {
	testWakeups(t, true, []wakeCase{
		{"a push to an empty shard", nil, pushIn("a", 0)},
		{"a push for later to an empty shard", nil, pushIn("a", time.Hour)},
		{"a push before the head", pushIn("a", time.Hour), pushIn("b", time.Minute)},
		{"a resume", func(h *holder) { pause(h); h.push(entry("a", core.When{})) }, resume},
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
		{"a job cancelled again", func(h *holder) { pushAndClaim(h); cancelA(h) }, cancelA},
		{"a cancel of what is not claimed", pushIn("a", 0), cancelA},
	})
}

func testWakeups(t *testing.T, wakes bool, cases []wakeCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hold(t, memory.New(memory.Options{}), "orders", 1)
				if c.before != nil {
					c.before(h)
				}

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wakeups, err := h.store.Wakeups(ctx, []core.Shard{h.shard})
				h.ok(err)

				c.do(h)
				if woken := len(received(wakeups)) > 0; woken != wakes {
					t.Errorf("woken: %t, want %t", woken, wakes)
				}
			})
		})
	}
}

func (h *holder) cancel(id string) {
	h.t.Helper()
	_, err := h.store.Cancel(h.t.Context(), ports.CancelRequest{Shard: h.shard, IDs: []string{id}})
	h.ok(err)
}

// Nothing waits for a reader, and missed wake-ups come once for each shard. The first may come
// twice: it was on its way when its shard woke again.
func TestWakeupsCoalesceForASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 4
		store := memory.New(memory.Options{})
		h := hold(t, store, "orders", shards)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wakeups, err := store.Open().Wakeups(ctx, core.Shards("orders", shards))
		h.ok(err)

		for i, e := range entries(1000) {
			e.When = core.In(time.Hour - time.Duration(i)*time.Second)
			h.push(e)
		}

		times := map[core.Shard]int{}
		for _, shard := range received(wakeups) {
			times[shard]++
		}

		most := 2
		for _, shard := range core.Shards("orders", shards) {
			if n := times[shard]; n < 1 || n > most {
				t.Errorf("%v came %d times, want once", shard, n)
			} else if n == 2 {
				most = 1
			}
		}
	})
}

func TestWakeupsAreOfTheShardsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t, memory.New(memory.Options{}), "orders", 4)
		asked := core.Shard{Queue: "orders", Index: 2}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wakeups, err := h.store.Wakeups(ctx, []core.Shard{asked, asked})
		h.ok(err)
		h.push(entries(100)...)
		if diff := cmp.Diff([]core.Shard{asked}, received(wakeups)); diff != "" {
			t.Errorf("woken for (-want +got):\n%s", diff)
		}
	})
}

func TestWakeupsEndWithTheirContext(t *testing.T) {
	for name, pushes := range map[string]int{"idle": 0, "with a wake-up that nobody takes": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hold(t, memory.New(memory.Options{}), "orders", 4)
				ctx, cancel := context.WithCancel(t.Context())
				wakeups, err := h.store.Wakeups(ctx, core.Shards("orders", 4))
				h.ok(err)

				h.push(entries(pushes)...)
				synctest.Wait()
				cancel()
				synctest.Wait()

				if shard, open := <-wakeups; open {
					t.Errorf("%v came after the context ended, want the channel closed", shard)
				}
				h.push(entry("late", core.In(-time.Hour)))
			})
		})
	}
}

func TestWakeupsRefuse(t *testing.T) {
	h := hold(t, memory.New(memory.Options{}), "orders", 1)
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
		{"a context that ended, for nodes", ended, core.Shard{}, context.Canceled},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := h.store.Wakeups(tt.ctx, []core.Shard{tt.shard}); !errors.Is(err, tt.want) {
				t.Errorf("Wakeups: %v, want %v", err, tt.want)
			}
		})
	}
}

// The channel of a forgotten queue is closed, so that its reader subscribes again, to
// the queue that may have been declared in its place.
func TestForgettingAQueueEndsItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		for _, name := range []string{"forgotten", "kept"} {
			if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: name, Shards: 2}); err != nil {
				t.Fatal(err)
			}
		}

		listen := func(names ...string) <-chan core.Shard {
			var ids []core.Shard
			for _, name := range names {
				ids = append(ids, core.Shards(name, 2)...)
			}
			wakeups, err := store.Wakeups(t.Context(), ids)
			if err != nil {
				t.Fatal(err)
			}
			return wakeups
		}

		both, kept := listen("forgotten", "kept"), listen("kept")
		if err := store.Forget(t.Context(), "forgotten"); err != nil {
			t.Fatal(err)
		}

		synctest.Wait()
		if !ended(both) {
			t.Error("a reader of the forgotten queue still waits")
		}
		if ended(kept) {
			t.Error("a reader of another queue was ended too")
		}
	})
}

// ended reports whether a channel on which nothing is pending is closed.
func ended(wakeups <-chan core.Shard) bool {
	select {
	case _, ok := <-wakeups:
		return !ok
	default:
		return false
	}
}
