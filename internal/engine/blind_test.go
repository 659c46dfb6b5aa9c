package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
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
