package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

func TestAnObserverSeesHandlersThatIgnoreTheEnd(t *testing.T) {
	timeout := errors.New("timeout")
	cases := []struct {
		cause ports.OverrunCause
		play  func(w *world, n *node)
	}{
		{ports.OverrunTimeout, func(*world, *node) {}},
		{ports.OverrunCancel, func(w *world, _ *node) { w.cancel(true, "job") }},
		{ports.OverrunLease, func(w *world, n *node) { n.link.set(down) }},
		{ports.OverrunShutdown, func(_ *world, n *node) { n.cancel() }},
	}

	for _, tt := range cases {
		t.Run(tt.cause.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := &seen{}
				n := w.start(func(ctx context.Context, b *execution.Batch) error {
					if tt.cause == ports.OverrunTimeout {
						_, cancel := b.WithTimeout(ctx, poll, timeout)
						defer cancel()
					}
					if w.elapsed() < 2*poll { // it runs again where the lease was lost
						time.Sleep(10 * time.Minute)
					}
					return nil
				}, o.by)

				w.sleep(poll)
				w.push("job", "x")
				tt.play(w, n)
				w.sleep(5 * time.Minute)
				n.link.set(up)
				w.sleep(10 * time.Minute)
				n.stop()

				if len(o.overruns) != 1 {
					t.Fatalf("%d overruns were seen, want one: %v", len(o.overruns), o.overruns)
				}
				e := o.overruns[0]
				if e.Cause != tt.cause || fmt.Sprint(e.IDs) != "[job]" || e.Shard != shardOfQueue(0) ||
					e.For < time.Minute || e.For > 65*time.Second {
					t.Errorf("an overrun %+v, want one of %v after a minute", e, tt.cause)
				}
			})
		})
	}
}

func TestAnObserverSeesWhatTheStoreFails(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		n := w.start(each(lasting(poll/2)), o.by)
		w.sleep(poll)

		for range 3 {
			w.push("job", "x")
			w.sleep(poll)
		}
		if len(o.failures) != 0 {
			t.Errorf("failures of a store that is well: %v", o.failures)
		}

		n.link.set(down)
		w.push("job", "x")
		w.sleep(2 * ttl)
		n.link.set(up)
		w.sleep(ttl)
		n.link.change(func() { n.link.refuse = func(method string) bool { return method == "Release" } })
		n.stop()

		calls := make(map[string]bool)
		for _, e := range o.failures {
			calls[e.Call] = true
			if e.Kind != ports.FailureUnknown || e.Err == nil ||
				(e.Shard == shardOfQueue(0)) != (e.Call == "turn" || e.Call == "renew" || e.Call == "acquire" ||
					e.Call == "release") {
				t.Errorf("a failure %+v", e)
			}
		}
		for _, call := range []string{"turn", "acquire", "renew", "announce", "record", "poll", "release"} {
			if !calls[call] {
				t.Errorf("no failure was seen of the call %q; of %v", call, calls)
			}
		}
	})
}

// The names of all other calls, which labels of metrics have too.
func TestFailedCallsHaveTheirNames(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		n := w.start(each(succeed), o.by, func(s *setup) {
			s.queue.MaxRunning, s.RecoverOrphans = 5, true
			s.link.refuse = func(method string) bool { return method == "Declare" }
		})

		w.sleep(ttl)
		n.link.change(func() { n.link.refuse = func(method string) bool { return method == "Wakeups" } })
		w.sleep(ttl) // it works, and can't listen
		n.link.change(func() {
			n.link.refuse = func(method string) bool {
				return method == "Wakeups" || method == "Permit" || method == "Stats" || method == "Queues"
			}
		})

		for range 10 {
			w.push("job", "x")
			w.sleep(ttl)
		}

		calls := make(map[string]bool)
		o.do(func() {
			for _, e := range o.failures {
				calls[e.Call] = true
			}
		})

		want := map[string]bool{"declare": true, "listen": true, "permits": true, "orphans": true, "settings": true}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("calls that failed (-want +got):\n%s", diff)
		}
		n.link.change(func() { n.link.refuse = func(string) bool { return false } })
	})
}

// Jobs of a batch that its handler has not begun end with no execution.
func TestWhatHasNotBegunHasNoEnd(t *testing.T) {
	for name, play := range map[string]func(w *world, n *node){
		"the server stops":  func(_ *world, n *node) { n.cancel() },
		"the lease is lost": func(w *world, n *node) { n.link.set(down) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := &seen{}
				w.declare(1)
				w.pushEach(3)
				n := w.start(each(untilCancelled), batches(3), o.by)
				w.sleep(2 * poll)
				play(w, n)
				w.sleep(2 * ttl)
				if len(o.ended) != 1 || o.ended[0].ID != "job-0" {
					t.Errorf("ends %v, want that of the job that has begun", o.ended)
				}
				n.link.set(up)
			})
		})
	}
}

// Jobs that a lost lease leaves are not lost again with the next.
func TestEachLossIsSeenOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		var runs atomic.Int64
		n := w.start(each(func(context.Context, *core.Claim) error { runs.Add(1); return nil }), o.by,
			func(s *setup) { s.link.deferSettlement = func(string) bool { return true } })
		w.sleep(poll)
		w.push("job", "x")
		for range 3 {
			n.link.set(down)
			w.sleep(3 * ttl)
			n.link.set(up)
			w.sleep(3 * ttl)
		}
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
		w.sleep(ttl)
		if int64(len(o.ended)) != runs.Load() {
			t.Errorf("%d ends of %d executions: %v", len(o.ended), runs.Load(), o.ended)
		}
	})
}

// A turn reports whether a wake-up preceded it. If it claims nothing then, the wake-up was for
// nothing.
func TestAnObserverSeesWhatWakeUpsBring(t *testing.T) {
	woken := func(w *world, option func(*setup)) (work, spurious int) {
		o := &seen{}

		n := w.start(each(func(_ context.Context, c *core.Claim) error {
			time.Sleep(3 * poll)
			if c.ID == "b" && c.RetryCount < 0 {
				return errors.New("once")
			}
			return nil
		}), spread, o.by, option)

		w.sleep(memberTTL)
		w.push("a", "x")
		w.sleep(poll)
		w.cancel(true, "a") // which wakes the shard too
		w.sleep(5 * poll)
		w.push("b", "x")
		w.sleep(time.Hour) // it is retried, for which nobody wakes
		n.stop()

		for _, turn := range o.turns {
			switch {
			case turn.Woken && turn.Claimed > 0:
				work++
			case turn.Woken:
				spurious++
			}
		}
		return work, spurious
	}

	inWorld(t, func(w *world) {
		if work, spurious := woken(w, func(*setup) {}); work != 2 || spurious != 1 {
			t.Errorf("%d wake-ups brought work and %d none, want two and one", work, spurious)
		}
	})
	inWorld(t, func(w *world) {
		if work, spurious := woken(w, noWakeups); work != 0 || spurious != 0 {
			t.Errorf("%d and %d wake-ups were seen by a node without wake-ups", work, spurious)
		}
	})
}

// Waits are by the store's clock, as those of the history.
func TestWaitsAreByTheStoresClock(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store = memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(-time.Hour) }})
		o := &seen{}
		n := w.start(each(lasting(7*time.Millisecond)), lanes(1), o.by)
		w.sleep(poll)
		w.pushEach(10)
		w.sleep(10 * poll)
		n.stop()
		if sum := time.Duration(w.history().WaitSum) * time.Microsecond; o.waits == 0 ||
			(o.waits-sum).Abs() > time.Microsecond*10 {
			t.Errorf("jobs waited %v, the history says %v", o.waits, sum)
		}
	})
}
