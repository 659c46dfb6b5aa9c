package engine_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

func TestOneJobOnItsLastChanceRunsAtATime(t *testing.T) {
	inWorld(t, func(w *world) {
		const shardCount = 5
		w.declare(shardCount)
		var ids []string
		for i := range shardCount {
			ids = append(ids, idIn(i, shardCount))
		}
		w.placeRecovered(3, ids...)
		var running, most, runs atomic.Int64
		w.start(each(func(_ context.Context, c *core.Claim) error {
			if c.Recoveries >= 3 {
				runs.Add(1)
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
			}
			time.Sleep(3 * poll)
			return nil
		}), shards(shardCount), lanes(shardCount))
		w.sleep(5 * shardCount * poll)
		if most.Load() != 1 || runs.Load() != shardCount {
			w.Errorf("%d runs, at most %d at a time; want %d, one at a time", runs.Load(), most.Load(), shardCount)
		}
		w.wantCounts(0, 0, shardCount, 0)
	})
}

// While a job on its last chance runs, its node announces it, and no longer.
func TestANodeAnnouncesItsJobOnTheLastChance(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		w.placeRecovered(3, idIn(0, 2), idIn(1, 2))

		var mu sync.Mutex
		var ran []string
		n := w.start(each(func(_ context.Context, c *core.Claim) error {
			mu.Lock()
			ran = append(ran, c.ID)
			length := time.Duration(len(ran)) * 2 * announceInterval
			mu.Unlock()
			w.sleepInHandler(length)
			return nil
		}), spread, shards(2), lanes(2))

		for run := range 2 {
			w.sleepUntil(time.Duration(run+1)*2*announceInterval - time.Millisecond)
			got, _ := w.announced(n)
			mu.Lock()
			begun := slices.Clone(ran)
			mu.Unlock()

			if len(begun) != run+1 {
				w.Fatalf("%d jobs have begun, want %d", len(begun), run+1)
			}
			want := ports.LastChance{Shard: shardOfQueue(core.ShardOf(begun[run], 2)), ID: begun[run]}
			if got.Status.LastChance != want {
				w.Errorf("while %q runs, %+v is announced", begun[run], got.Status.LastChance)
			}
		}

		w.sleep(2 * announceInterval)
		if got, _ := w.announced(n); got.Status.LastChance != (ports.LastChance{}) {
			w.Errorf("%+v is announced while no job runs", got.Status.LastChance)
		}
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestAShardGoesOnWhenItsJobOnTheLastChanceIsDeleted(t *testing.T) {
	for name, how := range map[string]struct {
		option func(*setup)
		within time.Duration
	}{
		"with wake-ups": {func(*setup) {}, poll / 10},
		"by polling":    {noWakeups, 3 * poll},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(2)
				long, deleted := idIn(0, 2), idIn(1, 2)
				w.placeRecovered(3, long, deleted)

				var ran sync.Map
				w.start(each(func(_ context.Context, c *core.Claim) error {
					ran.Store(string(c.Payloads[0].Data), w.elapsed())
					if c.Recoveries == 3 {
						time.Sleep(100 * poll)
					}
					return nil
				}), shards(2), lanes(2), how.option)

				w.sleep(5 * poll)
				running := w.find(long).Claim
				if running == nil || !running.Begun {
					long, deleted = deleted, long
				}

				index := core.ShardOf(deleted, 2)
				if w.find(deleted).Queued == nil {
					w.Fatalf("%q was not put back", deleted)
				}
				if _, err := w.store.Delete(context.Background(),
					ports.JobStep{Shard: shardOfQueue(index), IDs: []string{deleted}}); err != nil {
					w.Fatal(err)
				}

				w.push(deleted, "other")
				w.sleep(how.within)
				if _, ok := ran.Load("other"); !ok {
					w.Errorf("the shard still waits at %v", w.elapsed())
				}
			})
		})
	}
}

func TestJobsOnTheirLastChanceShareNoBatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("a", "x") // is in front of the others, and not recovered
		w.placeRecovered(1, "b", "d")
		w.push("e", "x")
		var batched [][]string
		w.start(func(_ context.Context, b *execution.Batch) error {
			var ids []string
			for i := range b.Claims {
				ids = append(ids, b.Claims[i].ID)
			}
			batched = append(batched, ids)
			return nil
		}, batches(10), func(s *setup) { s.queue.Policy.MaxRecoveries = 1 })
		w.sleep(poll)
		for _, ids := range batched {
			if len(ids) > 1 && (slices.Contains(ids, "b") || slices.Contains(ids, "d")) {
				w.Errorf("a batch of %v, with a job on its last chance", ids)
			}
		}
		w.wantCounts(0, 0, 4, 0)
	})
}

// The final fate of the first of two jobs on their last chance as it begins.
var befalls = map[string]func(w *world, l *link, r ports.TurnRequest){
	"somebody else has settled it": func(w *world, _ *link, r ports.TurnRequest) {
		w.settleElsewhere(r.Begin[0], r.Lease.Shard)
	},
	"its lease is lost": func(_ *world, l *link, r ports.TurnRequest) {
		l.change(func() { l.broken[r.Lease.Shard] = ports.ErrLeaseLost })
	},
}

func TestALastChanceThatIsNotTakenIsTheNextJobs(t *testing.T) {
	for name, befall := range befalls {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(2)
				w.placeRecovered(3, idIn(0, 2), idIn(1, 2))
				var unlucky core.Shard
				var ran sync.Map
				var s *setup
				w.start(each(func(_ context.Context, c *core.Claim) error {
					ran.Store(core.ShardOf(c.ID, 2), true)
					return nil
				}), shards(2), lanes(2), func(its *setup) { s = its }, onFirstBegin(func(r ports.TurnRequest) {
					unlucky = r.Lease.Shard
					befall(w, s.link, r)
				}))
				w.sleep(poll / 2) // after a poll interval its shard would try again
				for index := range 2 {
					if _, ok := ran.Load(index); ok == (index == unlucky.Index) {
						w.Errorf("shard %d: its job has run: %t; the unlucky one is %d", index, ok, unlucky.Index)
					}
				}
			})
		})
	}
}

func TestAJobOnItsLastChanceThatOutlivesItsLeaseRunsAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		const lasts = 10 * poll
		w.declare(2)
		w.placeRecovered(3, idIn(0, 2), idIn(1, 2))
		var l *link
		var ran []time.Duration
		w.start(each(func(_ context.Context, c *core.Claim) error {
			ran = append(ran, w.elapsed())
			if len(ran) == 1 {
				l.change(func() { l.broken[shardOfQueue(core.ShardOf(c.ID, 2))] = ports.ErrLeaseLost })
				time.Sleep(lasts)
			}
			return nil
		}), shards(2), lanes(2), func(s *setup) { l = s.link })
		w.sleep(2 * lasts)
		if len(ran) != 2 {
			w.Fatalf("the jobs ran at %v, want one run of each", ran)
		}
		w.within("the second one", ran[1]-ran[0], lasts, lasts+2*poll)
	})
}

func TestOtherRecoveredJobsDoNotEndALastChance(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		w.placeRecovered(1, idIn(2, 3))
		w.placeRecovered(3, idIn(0, 3), idIn(1, 3))
		var running, most, runs atomic.Int64
		w.start(each(func(_ context.Context, c *core.Claim) error {
			runs.Add(1)
			if c.Recoveries < 3 {
				time.Sleep(poll / 2)
				return nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(5 * poll)
			return nil
		}), shards(3), lanes(3))
		w.sleep(15 * poll)
		if most.Load() != 1 || runs.Load() != 3 {
			w.Errorf("%d runs, at most %d at a time on their last chance; want 3, one at a time",
				runs.Load(), most.Load())
		}
	})
}

// The job that waits for another's last chance is put back in the very turn that its lane
// requests. That turn has answered the lane, although it could claim nothing for it.
func TestAShardThatWaitsForALastChanceDoesNotSpin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		// The node ticks at 2.9 s and 3.4 s, and its poll at 3 s lets the lane look.
		w.placeRecoveredIn(900*time.Millisecond, 3, idIn(0, 2))
		w.placeRecoveredIn(1950*time.Millisecond, 3, idIn(1, 2))
		n := w.start(each(lasting(5*poll)), shards(2), lanes(2), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Heads" }
		})
		w.sleep(poll * 7 / 2)
		turns := 0
		for _, turn := range n.link.turnsSent() {
			if turn.request.Lease.Shard == shardOfQueue(1) && turn.at.Sub(w.began) >= 3*poll {
				turns++
			}
		}
		if turns == 0 || turns > 10 {
			w.Errorf("%d turns after the poll that let the lane look, want a few", turns)
		}
		w.sleep(10 * poll)
		w.wantCounts(0, 0, 2, 0)
	})
}
