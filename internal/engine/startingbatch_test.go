package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// A shard's turns begin to fail while a recovered job of it is claimed and has not begun.
// Its lane does not choose it again and again, and works its other shard.
func TestAShardThatCannotBeginItsJobStopsNoLane(t *testing.T) {
	inWorld(t, func(w *world) {
		const due = 5 * time.Second
		w.declare(2)
		ids, other := idsIn(0, 2, 23), idIn(1, 2)
		slices.Sort(ids)
		quick, slow, recovered := ids[:20], ids[20:22], ids[22]

		w.push(recovered, "x")
		lease := w.holdLease(shardOfQueue(0))
		claim := w.turn(ports.TurnRequest{Lease: lease, Number: 1, TTL: ttl, Want: 1}).Claims[0]
		w.turn(ports.TurnRequest{Lease: lease, Number: 2, TTL: ttl, Settlements: []core.Settlement{{
			ID: recovered, Receipt: claim.Receipt, Rest: core.Requeue,
			PutBack: core.PutBack{Delay: due, RetryCount: core.FreshRetryCount, Recoveries: 1},
		}}})
		if err := w.store.Release(t.Context(), lease); err != nil {
			w.Fatal(err)
		}

		for _, id := range slow { // all three are due at once, this one last
			w.pushLater(id, due)
		}

		a := w.audit()
		var n *node
		n = w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if slices.Contains(slow, c.ID) {
				n.link.change(func() { n.link.broken[shardOfQueue(0)] = errDown })
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		}), shards(2), lanes(1))

		w.sleepUntil(due - 200*time.Millisecond)
		for _, id := range quick { // so that the node learns to claim ahead
			w.sleep(10 * time.Millisecond)
			w.push(id, "x")
		}

		w.sleepUntil(due + 500*time.Millisecond)
		a.wantRuns(slow[1], 1)
		a.wantRuns(recovered, 0)
		w.push(other, "x")
		w.sleep(100 * time.Millisecond)
		a.wantRuns(other, 1)

		n.link.change(func() { clear(n.link.broken) })
		w.sleep(3 * poll)
		a.wantRuns(recovered, 1)
	})
}

// settleElsewhere settles a claimed job, as if somebody else had.
func (w *world) settleElsewhere(r core.ClaimRef, shard core.Shard) {
	w.Helper()
	done := []core.Settlement{{ID: r.ID, Receipt: r.Receipt, Processed: true}}
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
		w.start(func(_ context.Context, b *execution.Batch) error {
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

// The other jobs of a batch start although the recovered one is gone before it has begun.
func TestABatchStartsWithoutItsCancelledJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		w.push("other", "x")
		a := w.audit()
		w.start(a.watch(succeed), batches(2), onFirstBegin(func(r ports.TurnRequest) {
			cancel := ports.CancelRequest{Shard: r.Lease.Shard, IDs: []string{"recovered"}, Drop: true}
			if _, err := w.store.Cancel(context.Background(), cancel); err != nil {
				w.Error(err)
			}
		}), func(s *setup) {
			turns := 0
			s.link.lose = func(method string) bool {
				if method == "Turn" {
					turns++
				}
				return method == "Turn" && turns == 2
			}
		})
		w.sleep(3 * poll)
		w.within("the other job started", a.wantRuns("other", 1)[0].at, 0, poll/2)
		w.wantCounts(0, 0, 1, 0)
	})
}

// A turn that fails is known to be of no use: its lane waits no longer.
func TestALaneLeavesAShardWhoseTurnFails(t *testing.T) {
	const fails = 10 * time.Millisecond
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1), func(s *setup) {
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
