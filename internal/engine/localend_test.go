package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// slowObserver takes its time with the dropped lease of one shard, and so holds up
// the loop that drops leases, as a process does that the machine has paused.
type slowObserver struct {
	ports.NopObserver
	shard core.Shard
	takes time.Duration
}

func (o slowObserver) LeaseChanged(e ports.LeaseEvent) {
	if e.Shard == o.shard && e.Change == ports.LeaseDropped {
		time.Sleep(o.takes)
	}
}

// The lease's own end counts, also if nobody has noticed it yet.
func TestNoBatchStartsAfterTheLocalEndOfItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		// All are of the shard whose lease is looked at last, and slow comes first.
		slow, ids := "slow", idsIn(1, 2, 104)
		for core.ShardOf(slow, 2) != 1 || slow > "id" {
			slow = "a" + slow
		}
		const cut = 2*poll + poll/4 // when the store is last reached
		a := w.audit()
		n := w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.ID == slow && c.Recoveries == 0 {
				w.sleepInHandler(cut + ttl + time.Second)
			}
			return nil
		}), shards(2), lanes(2), roundTrip(2*time.Millisecond), func(s *setup) { s.Observer = slowObserver{shard: shardOfQueue(0), takes: ttl} })
		w.sleep(poll)
		for _, id := range ids[4:] { // the shard learns that jobs are short, and claims ahead
			w.pushEntries(entry(id))
		}
		w.sleepUntil(2 * poll)
		w.pushEntries(entry(slow), entry(ids[0]), entry(ids[1]), entry(ids[2]))
		w.sleepUntil(cut)
		if claimed := w.stats().Claimed; claimed < 2 {
			w.Fatalf("%d jobs are claimed; the test needs one that waits behind the one that runs", claimed)
		}
		w.push(ids[3], "x") // a turn is under way, so that nothing can go back
		n.link.set(down)
		w.sleepUntil(cut + 3*ttl/2)
		for _, id := range ids[:4] {
			for _, run := range a.of(id) {
				w.within(id+" started", run.at, 0, cut+ttl*4/5)
			}
		}
		n.link.set(up)
		w.sleep(2 * ttl)
		w.wantCounts(0, 0, 105, 0)
	})
}

// What follows a settlement follows it once the store has made it.
func TestNothingIsReportedOfADeferredSettlementUntilItIsCarriedOut(t *testing.T) {
	for name, c := range map[string]struct {
		committed         bool
		processed, failed uint64
		buried            int
	}{
		"the transaction commits":  {committed: true, processed: 1},
		"the transaction does not": {failed: 1, buried: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				tx := &transaction{world: w}
				buried := 0
				n := w.start(each(func(ctx context.Context, _ *core.Claim) error { return engine.SettleIn(ctx, tx) }), func(s *setup) {
					s.queue.Policy.MaxRetries = 0
					s.link.deferSettlement = func(string) bool { return true }
					s.Buried = func(context.Context, engine.Buried) error {
						buried++
						return nil
					}
				})
				w.sleep(poll)
				w.push("job", "x")
				w.sleep(3 * ttl)
				w.wantHistory(0, 0)
				if buried != 0 {
					w.Error("a burial was told before the store has made it")
				}
				if c.committed {
					if err := tx.commit(); err != nil {
						w.Fatal(err)
					}
				}
				n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				w.sleep(5 * poll)
				w.wantHistory(c.processed, c.failed)
				if buried != c.buried {
					w.Errorf("%d burials were told, want %d", buried, c.buried)
				}
			})
		})
	}
}

// Somebody else has settled the job: what this node would have made of it has not
// happened.
func TestNothingIsReportedOfASkippedSettlement(t *testing.T) {
	inWorld(t, func(w *world) {
		policy := core.RetryPolicy{MaxRetries: 0}
		told := 0
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			done := policy.Settlement(c, &core.Outcome{Kind: core.Done}, 0)
			if err := w.store.Settle(ctx, shardOfQueue(0), []core.Settlement{done}); err != nil {
				w.Error(err)
			}
			return errors.New("too late")
		}), func(s *setup) {
			s.queue.Policy = policy
			s.Buried = func(context.Context, engine.Buried) error {
				told++
				return nil
			}
		})
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(5 * poll)
		if told != 0 {
			w.Errorf("%d burials were told of a job that was done", told)
		}
		if skipped := n.skipped(); skipped != 1 {
			w.Errorf("%d settlements were skipped; the test needs one", skipped)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func (n *node) skipped() (count int) {
	for _, turn := range n.link.turnsSent() {
		count += len(turn.reply.Skipped)
	}
	return count
}
