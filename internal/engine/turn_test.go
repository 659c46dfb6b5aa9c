package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestUnderLoadTurnsAreFarFewerThanJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs, trip = 10_000, 10 * time.Millisecond
		w.declare(1)
		w.pushEach(jobs)
		n := w.start(each(succeed), roundTrip(trip))
		w.sleep(time.Minute)
		w.wantCounts(0, 0, jobs, 0)
		// A turn claims at most MaxTurnJobs. It carries the settlements of jobs that have finished by
		// then. So at worst a turn that settles few is followed by one that settles the rest and claims
		// anew: two for each MaxTurnJobs, and a few to learn the pace and send statistics.
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
		if job == nil || job.PerformAt != pushed || !job.Fresh() || job.Recoveries != 0 || job.Failures.Newest().Text != "" {
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
		// Finished jobs are still claimed until the next turn.
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
					w.Errorf("%d of %d jobs are done at %v, with %d turns",
						done, jobs, w.elapsed(), n.link.count("Turn"))
				}
			})
		})
	}
}

func TestAClaimShowsItsNodeAndTime(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(untilCancelled), shards(2), lanes(2))
		w.sleep(poll)
		id := idIn(1, 2)
		w.push(id, "x")
		got := w.find(id).Claim
		want := &ports.ClaimView{
			Shard:      shardOfQueue(1),
			Owner:      n.owner,
			Node:       "node-1",
			Since:      core.InstantOf(time.Now()),
			Count:      1,
			LeaseUntil: w.stats().Shards[1].ExpiresAt,
		}
		if got == nil {
			w.Fatal("the job is not claimed")
		}
		want.Claim = got.Claim
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("claim (-want +got):\n%s", diff)
		}
	})
}
