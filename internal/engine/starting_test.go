package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// settleElsewhere settles a claimed job, as if somebody else had.
func (w *world) settleElsewhere(r core.ClaimRef, shard core.Shard) {
	w.Helper()
	done := []core.Settlement{{ID: r.ID, Mark: r.Mark, Processed: true}}
	if err := w.store.Settle(context.Background(), shard, done); err != nil {
		w.Error(err)
	}
}

// onFirstBegin is an option: f is called before the first turn that begins jobs
// reaches the store.
func onFirstBegin(f func(r ports.TurnRequest)) func(*setup) {
	var once sync.Once
	return func(s *setup) {
		s.link.beforeTurn = func(r ports.TurnRequest) {
			if len(r.Begin) > 0 {
				once.Do(func() { f(r) })
			}
		}
	}
}

func TestATurnThatBeginsJobsClaimsNoneBeside(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "a", "b")
		w.start(each(lasting(poll/2)), func(s *setup) { s.Prefetch = 0 })
		w.sleep(poll / 4)
		w.wantCounts(1, 1, 0, 0)
	})
}

func TestOnlyTheRecoveredJobsOfABatchBegin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "a", "c")
		w.push("d", "x")
		begun := map[string]bool{}
		w.start(func(_ context.Context, b *engine.Batch) error {
			for i := range b.Claims {
				begun[b.Claims[i].ID] = w.find(b.Claims[i].ID).Claim.Begun
			}
			return nil
		}, batches(10))
		w.sleep(poll)
		if diff := cmp.Diff(map[string]bool{"a": true, "c": true, "d": false}, begun); diff != "" {
			w.Errorf("what had begun in the store (-want +got):\n%s", diff)
		}
	})
}

func TestABegunJobWhoseLaneIsElsewhereGoesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		recovered, other := idIn(0, 2), idIn(1, 2)
		w.placeRecovered(1, recovered)
		w.start(each(func(_ context.Context, c *core.Claim) error {
			if c.ID == other {
				time.Sleep(10 * poll)
			}
			return nil
		}), shards(2), lanes(1), onFirstBegin(func(ports.TurnRequest) {
			w.pushEntries(entry(other))
			time.Sleep(poll / 2) // the lane turns to the other shard
		}))
		w.sleep(4 * poll)
		if w.find(other).Claim == nil {
			w.Fatal("the lane is not elsewhere")
		}
		if w.find(recovered).Queued == nil {
			w.Errorf("%q is still claimed %v after it was to start", recovered, w.elapsed())
		}
		w.sleep(10 * poll)
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestAJobThatIsCancelledAsItBeginsDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		w.start(each(func(_ context.Context, c *core.Claim) error {
			w.Errorf("the handler of %q runs", c.ID)
			return nil
		}), onFirstBegin(func(r ports.TurnRequest) {
			cancel := ports.CancelRequest{Shard: r.Lease.Shard, IDs: []string{"recovered"}, Drop: true}
			if _, err := w.store.Cancel(context.Background(), cancel); err != nil {
				w.Error(err)
			}
		}))
		w.sleep(3 * poll)
		w.wantCounts(0, 0, 0, 0)
	})
}

func TestWhatHasNotBegunDoesNotStartAlsoWhenTheAnswerIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		begins := 0
		w.start(each(func(context.Context, *core.Claim) error {
			w.Error("the handler runs although its job was settled by somebody else")
			return nil
		}), onFirstBegin(func(r ports.TurnRequest) {
			begins++
			w.settleElsewhere(r.Begin[0], r.Lease.Shard)
		}), func(s *setup) {
			turns := 0
			s.link.lose = func(method string) bool {
				if method == "Turn" {
					turns++
				}
				return method == "Turn" && turns == 2
			}
		})
		w.sleep(2 * poll)
		if begins != 1 {
			w.Errorf("%d turns lost their answer, want 1", begins)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

// What befalls the first of two jobs on their last chance as it begins, for good.
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

func TestOtherRecoveredJobsGiveNobodysLastChanceAway(t *testing.T) {
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
			w.Errorf("%d runs, at most %d at a time on their last chance; want 3, one at a time", runs.Load(), most.Load())
		}
	})
}

// The job that waits for another's last chance goes back in the very turn that its lane
// asks for. That turn has answered the lane, although it could claim nothing for it.
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

// A turn that fails is known to be of no use: its lane waits no longer.
func TestALaneLeavesAShardWhoseTurnFails(t *testing.T) {
	const fails = 10 * time.Millisecond
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(idle), shards(2), lanes(1), func(s *setup) {
			s.link.beforeTurn = func(r ports.TurnRequest) {
				if r.Lease.Shard == shardOfQueue(0) {
					time.Sleep(fails)
				}
			}
		})
		w.sleep(poll)
		n.link.change(func() { n.link.broken[shardOfQueue(0)] = errDown })
		pushed := w.elapsed()
		w.pushEntries(entry(idIn(0, 2)))
		time.Sleep(time.Millisecond) // the broken shard's job is the older one
		w.pushEntries(entry(idIn(1, 2)))
		w.sleep(poll)
		runs := a.wantRuns(idIn(1, 2), 1)
		w.within("the other shard's job", runs[0].at-pushed, fails, 2*fails)
		n.link.heal()
	})
}
