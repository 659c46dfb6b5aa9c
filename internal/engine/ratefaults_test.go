package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// oneEach is a rate of one start a second.
var oneEach = core.Rate{Count: 1, Per: time.Second}

// An outage of the store in which no slot can be taken is logged, and the first failure after it is
// followed by a try as soon as the first one of all.
func TestAnOutageOfTakesIsLoggedAndForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		refused := 0
		n := w.start(s.handler(time.Millisecond), spread, shards(1), rated(oneEach), func(s *setup) {
			s.link.refuse = func(method string) bool {
				if method != "Take" || refused == 0 {
					return false
				}
				refused--
				return true
			}
		})
		w.sleep(announces)

		n.link.change(func() { refused = 60 })
		w.push("a", "x")
		w.sleep(5 * time.Minute)
		w.wantCounts(0, 0, 1, 0)
		n.wantLines(1, "level=WARN", "the store fails", "start jobs by a rate")
		n.wantLines(1, "level=INFO", "the store answers again", "start jobs by a rate")

		n.link.change(func() { refused = 1 })
		w.push("b", "x")
		w.sleep(100 * time.Millisecond)
		w.wantCounts(0, 0, 2, 0)
	})
}

// grantless is a store that replies no grant to some takes.
type grantless struct {
	notifyingLink
	left *int
}

func (s grantless) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	reply, err := s.notifyingLink.Take(ctx, r)
	if *s.left--; *s.left >= 0 {
		reply.Grants = nil
	}
	return reply, err
}

// A store that does not answer each take has failed.
func TestATakeWithoutAGrantIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		left := 3
		n := w.start(s.handler(time.Millisecond), spread, shards(1), rated(oneEach), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return grantless{l, &left} }
		})
		w.sleep(announces)
		w.push("a", "x")
		w.sleep(time.Minute)
		w.wantCounts(0, 0, 1, 0)
		n.wantLines(1, "level=WARN", "the store fails", "with 0 grants")
	})
}

// A server that slows down a queue drops the slots that it has.
func TestSlowDownDropsTheSlotsOfItsServer(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		w.start(s.slowing(2, time.Hour), spread, shards(4), lanes(1), slows,
			rated(core.Rate{Count: 1, Per: time.Minute, Burst: 99}), roundTrip(time.Millisecond))
		w.sleep(announces)
		w.pushMore(100)
		w.sleep(time.Minute)
		if n := s.since(w.began); n != 2 {
			t.Errorf("%d batches start, want 2: the second one has slowed down the queue", n)
		}
	})
}

// A server that has slowed down a queue learns within a poll interval that an operator has ended the
// stop.
func TestAServerNoticesThatItsStopHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		w.start(s.slowing(1, time.Hour), spread, shards(4), lanes(1), slows, rated(oneEach))
		w.sleep(announces)
		w.pushMore(10)
		w.sleep(time.Minute)
		if n := s.since(w.began); n != 1 {
			t.Errorf("%d batches start before the stop ends, want 1", n)
		}

		w.must(w.store.Stop(w.Context(), ports.StopRequest{Queue: queueName}))
		w.sleep(time.Minute)
		w.wantCounts(1, 0, 9, 0)
	})
}

// Of several jobs of a batch that slow down the queue, the longest time counts, up to a bound.
func TestSlowDownLastsAsLongAsTheLongestOfABatch(t *testing.T) {
	for longest, want := range map[time.Duration]time.Duration{
		time.Hour:      time.Hour,
		48 * time.Hour: core.MaxStop,
	} {
		inWorld(t, func(w *world) {
			times := map[string]time.Duration{"a": time.Second, "b": longest, "c": time.Minute}
			w.start(each(func(_ context.Context, c *core.Claim) error { return slowDown{times[c.ID]} }),
				spread, shards(1), batches(3), rated(oneEach), slows)
			w.sleep(announces)
			w.pushEntries(entry("a"), entry("b"), entry("c"))
			w.sleep(time.Millisecond)
			w.wantStop(want - time.Millisecond)
		})
	}
}

// A queue without a rate is told once that SlowDown does not slow it down.
func TestSlowDownWithoutARateIsLoggedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(context.Context, *core.Claim) error { return slowDown{time.Minute} }), spread, shards(1), slows)
		w.sleep(announces)
		w.pushEach(3)
		w.sleep(time.Second)
		n.wantLines(1, "level=WARN", "SlowDown has only snoozed its job")
	})
}

// A stop that the store does not take is logged, and not observed.
func TestAStopThatFailsIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		var o rateSeen
		n := w.start(s.slowing(1, time.Hour), spread, shards(1), rated(oneEach), slows, func(s *setup) {
			s.Observer = &o
			s.link.refuse = func(method string) bool { return method == "Stop" }
		})
		w.sleep(announces)
		w.push("a", "x")
		w.sleep(time.Minute)
		n.wantLines(1, "level=ERROR", "the rate of a queue could not be stopped")

		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.stops) > 0 {
			t.Errorf("the stops are %+v, want none", o.stops)
		}
	})
}

// RunDue takes no more slots than it runs batches: none for a shard without a due job, and one that no
// batch has used serves the next.
func TestRunDueTakesASlotForEachBatch(t *testing.T) {
	for name, deletes := range map[string]bool{"of two shards": false, "of one that loses its job": true} {
		inWorld(t, func(w *world) {
			w.declare(3)
			first, second := idIn(0, 3), idIn(2, 3)
			w.pushEntries(entry(first), entry(second))

			l := newLink(w.store.Open())
			l.beforeTurn = func(r ports.TurnRequest) {
				if deletes && r.Lease.Shard.Index == 0 {
					_, err := w.store.Delete(w.Context(), ports.JobStep{Shard: r.Lease.Shard, IDs: []string{first}})
					w.must(err)
				}
			}

			q := newQueue(queueName, each(succeed))
			q.Shards, q.Rate = 3, core.Rate{Count: 1, Per: time.Hour, Burst: 9}
			want := 2
			if deletes {
				want, q.Rate.Burst = 1, 0
			}
			if jobs, err := w.runDue(l, q, "runner"); jobs != want || err != nil {
				t.Errorf("%s: %d jobs ran, want %d; error %v", name, jobs, want, err)
			}

			reply, err := w.store.Limits(w.Context(), ports.LimitsRequest{Queue: queueName})
			w.must(err)
			if taken := time.Duration(want) * time.Hour; len(reply.Limits) != 1 || reply.Limits[0].Next.Sub(reply.Now) != taken {
				t.Errorf("%s: the limiters are %+v, want one with %d slots taken", name, reply.Limits, want)
			}
		})
	}
}

// RunDue ends when the rate allows no more, also if it runs no other queue.
func TestRunDueWithoutASlotRunsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(2)
		w.must(w.store.Stop(w.Context(), ports.StopRequest{Queue: queueName, For: time.Hour}))
		q := newQueue(queueName, each(succeed))
		q.Rate = oneEach
		l := newLink(w.store.Open())
		if jobs, err := w.runDue(l, q, "runner"); jobs != 0 || err != nil {
			t.Errorf("%d jobs ran in a stop; error %v", jobs, err)
		}
	})
}
