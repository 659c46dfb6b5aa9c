package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestUnderLoadTurnsAreFarFewerThanJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs, trip = 10_000, 10 * time.Millisecond
		w.declare(1)
		w.pushEach(jobs)
		n := w.start(each(succeed), roundTrip(trip))
		w.sleep(time.Minute)
		w.wantCounts(0, 0, jobs, 0)
		// A turn claims at most MaxTurnJobs. What has finished when a turn is made
		// goes along, so at worst a turn that settles few is followed by one that
		// settles the rest and claims anew: two for each MaxTurnJobs, and a few to
		// learn the pace and send statistics.
		if turns, most := n.link.count("Turn"), 2*jobs/core.MaxTurnJobs+20; turns > most {
			w.Errorf("%d turns for %d jobs, want at most %d", turns, jobs, most)
		}
		turns := n.link.turnsSent()
		if took, most := turns[len(turns)-1].at.Sub(w.began), 2*time.Second; took > most {
			w.Errorf("the last turn was at %v, want all done within %v", took, most)
		}
	})
}

func TestTurnsNeverOverlapAndCountUp(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(lasting(time.Millisecond)), roundTrip(7*time.Millisecond))
		for range 50 {
			w.pushEach(5)
			w.sleep(11 * time.Millisecond)
		}
		w.sleep(time.Second)
		var last int64
		var free time.Time
		for _, turn := range n.link.turnsSent() {
			if number := turn.request.Number; number != last+1 {
				w.Errorf("turn %d follows turn %d", number, last)
			}
			if turn.at.Before(free) {
				w.Errorf("turn %d was sent while another was under way", turn.request.Number)
			}
			last, free = turn.reply.Last, turn.at.Add(7*time.Millisecond-1)
		}
	})
}

func TestJobsClaimedAheadThatDoNotStartGoBackUntouched(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.ID == "long" {
				time.Sleep(10 * poll)
			}
			return nil
		}))
		w.sleep(poll)
		w.pushEach(100) // teaches the shard to claim ahead
		w.sleep(poll)
		w.pushEntries(entry("long"), entry("waits-1"), entry("waits-2"))
		pushed := core.InstantOf(time.Now())
		synctest.Wait()
		if w.find("waits-1").Claim == nil {
			w.Fatal("nothing was claimed ahead; the test needs it")
		}
		w.sleep(2 * poll)
		w.wantCounts(2, 1, 100, 0)
		job := w.find("waits-1").Queued
		if job == nil || job.PerformAt != pushed || !job.Fresh() || job.Recoveries != 0 || job.Error != "" {
			w.Errorf("the job is %+v, want it queued and untouched", job)
		}
		w.push("waits-1", "later")
		w.sleep(10 * poll)
		if diff := cmp.Diff([]string{"x", "later"}, a.wantRuns("waits-1", 1)[0].payloads); diff != "" {
			w.Errorf("payloads, of which the later merged (-want +got):\n%s", diff)
		}
	})
}

func TestWithoutPrefetchAJobIsClaimedWhenItsLaneIsFree(t *testing.T) {
	inWorld(t, func(w *world) {
		var most atomic.Int64
		w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Millisecond)
			most.Store(max(most.Load(), w.stats().Claimed))
			return nil
		}), func(s *setup) { s.Prefetch = 0 }, roundTrip(time.Millisecond))
		w.sleep(poll)
		w.pushEach(100)
		w.sleep(poll)
		w.wantCounts(0, 0, 100, 0)
		if most.Load() != 1 {
			w.Errorf("up to %d jobs were claimed at once, want 1", most.Load())
		}
	})
}

func TestPrefetchIsAnUpperBound(t *testing.T) {
	inWorld(t, func(w *world) {
		var most atomic.Int64
		w.start(each(func(context.Context, *core.Claim) error {
			most.Store(max(most.Load(), w.stats().Claimed))
			return nil
		}), func(s *setup) { s.Prefetch = 10 }, roundTrip(time.Millisecond))
		w.sleep(poll)
		w.pushEach(1000)
		w.sleep(10 * poll)
		w.wantCounts(0, 0, 1000, 0)
		// What has finished is still claimed until the next turn.
		if got := most.Load(); got < 5 || got > 2*10 {
			w.Errorf("up to %d jobs were claimed at once, want about 10", got)
		}
	})
}

func TestNothingIsClaimedAheadOfJobsThatTakeLong(t *testing.T) {
	inWorld(t, func(w *world) {
		var most atomic.Int64
		w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Second)
			most.Store(max(most.Load(), w.stats().Claimed))
			return nil
		}), roundTrip(time.Millisecond))
		w.sleep(poll)
		w.pushEach(20)
		w.sleep(time.Minute)
		w.wantCounts(0, 0, 20, 0)
		if most.Load() != 1 {
			w.Errorf("up to %d jobs were claimed at once, want 1", most.Load())
		}
	})
}

func TestWhatTheStoreCannotReachNowIsSentAgainWithoutHaste(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		n.link.change(func() { n.link.deferSettlement = func(id string) bool { return id == "job-1" } })
		w.pushEach(3)
		w.sleep(poll)
		w.wantCounts(0, 1, 2, 0)
		before := n.link.count("Turn")
		w.sleep(10 * poll)
		if turns := n.link.count("Turn") - before; turns < 10 || turns > 20 {
			w.Errorf("the held settlement was sent %d times in 10 poll intervals, want 1 to 2 in each", turns)
		}
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
		w.sleep(poll)
		w.wantCounts(0, 0, 3, 0)
	})
}

func TestWhatTheStoreCouldNotReachIsSentAgainAlsoAfterALostReply(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		turn := 0 // the first claims, the second settles
		n.link.change(func() {
			n.link.deferSettlement = func(string) bool { return turn == 2 }
			n.link.lose = func(method string) bool {
				if method == "Turn" {
					turn++
				}
				return method == "Turn" && turn == 2
			}
		})
		w.push("job", "x")
		w.sleep(2 * poll)
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestShutdownWaitsForWhatTheStoreCannotReachNowAsLongAsForHandlers(t *testing.T) {
	for name, freed := range map[string]bool{"and settles it": true, "and leaves it to the next owner": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(succeed), func(s *setup) {
					s.link.deferSettlement = func(string) bool { return true }
					s.ShutdownTimeout = 10 * time.Second
				})
				w.sleep(poll)
				w.push("job", "x")
				n.cancel()
				asked := w.elapsed()
				w.sleep(5 * time.Second)
				if freed {
					n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				}
				n.awaitEnd()
				if freed {
					w.within("Run returned", w.elapsed(), asked+5*time.Second, asked+6*time.Second)
					w.wantCounts(0, 0, 1, 0)
					return
				}
				w.within("Run returned", w.elapsed(), asked+10*time.Second, asked+11*time.Second)
				w.wantCounts(0, 1, 0, 0)
				if owner := w.stats().Shards[0].Owner; owner != "" {
					w.Errorf("the shard still belongs to %q", owner)
				}
			})
		})
	}
}

func TestALaneThatHasWorkNeverWaitsForAPoll(t *testing.T) {
	for name, scheduler := range map[string]core.SchedulerFunc{
		"lag": core.Lag, "seq": core.Seq, "strict": core.StrictBy(queueName), "weighted": core.WeightedBy(nil),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const jobs, trip, poll = 60, 10 * time.Millisecond, 10 * time.Second
				w.declare(3)
				w.pushEach(jobs)
				n := w.start(each(lasting(20*time.Millisecond)), roundTrip(trip), shards(3), lanes(1),
					polling(poll), func(s *setup) { s.Scheduler = scheduler })
				// Seq finds nothing before the shards are acquired, and sleeps. Then a
				// job costs its 20 ms, and at most a trip to claim it after one that
				// settles another.
				w.sleep(poll + jobs*(20*time.Millisecond+2*trip) + time.Second)
				if done := w.stats().Processed; done != jobs {
					w.Errorf("%d of %d jobs are done at %v, with %d turns", done, jobs, w.elapsed(), n.link.count("Turn"))
				}
			})
		})
	}
}
