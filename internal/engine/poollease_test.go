package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// perShard is how many handlers of each shard run when a lease is lost.
const perShard = 10

// The loss of a lease cancels all handlers of its shard and no others, and the shard is not
// acquired again before they have returned.
func TestALostLeaseCancelsTheHandlersOfItsShardAlone(t *testing.T) {
	for name, breaks := range map[string]func(w *world, n *node){
		"a turn is refused": func(w *world, n *node) {
			n.link.change(func() { n.link.broken[shardOfQueue(1)] = ports.ErrLeaseLost })
			w.pushEntries(entry(idsIn(1, 3, perShard+1)[perShard])) // the turn that claims it
		},
		"a turn fails for the TTL": func(w *world, n *node) {
			n.link.change(func() { n.link.broken[shardOfQueue(1)] = errDown })
			w.pushEntries(entry(idsIn(1, 3, perShard+1)[perShard]))
			w.sleep(ttl)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) { loseOneLease(w, func(n *node) { breaks(w, n) }) })
		})
	}
}

func loseOneLease(w *world, breaks func(n *node)) {
	const returning = 5 * time.Second

	var mu sync.Mutex
	var cancelled, returned []time.Duration
	n := w.start(each(func(ctx context.Context, c *core.Claim) error {
		select {
		case <-ctx.Done():
		case <-time.After(2 * ttl):
			return nil
		}
		if shard := core.ShardOf(c.ID, 3); shard != 1 || !errors.Is(context.Cause(ctx), ports.ErrLeaseLost) {
			w.Errorf("at %v: a handler of shard %d is cancelled: %v", w.elapsed(), shard, context.Cause(ctx))
		}
		mu.Lock()
		cancelled = append(cancelled, w.elapsed())
		late := time.Duration(len(cancelled)) * returning
		mu.Unlock()
		time.Sleep(late) // one after another
		mu.Lock()
		defer mu.Unlock()
		returned = append(returned, w.elapsed())
		return context.Cause(ctx)
	}), shards(3), pooled(100), roundTrip(time.Millisecond))

	w.sleep(poll)
	for shard := range 3 {
		w.pushTo(queueName, 3, idsIn(shard, 3, perShard)...)
	}

	w.sleep(poll)
	acquires := n.link.count("Acquire")
	breaks(n)
	w.sleep(poll)
	if mu.Lock(); len(cancelled) != perShard {
		w.Errorf("%d handlers are cancelled, want the %d of shard 1", len(cancelled), perShard)
	}
	mu.Unlock()

	n.link.heal()
	w.sleep((perShard-1)*returning - 2*poll)
	if got := n.link.count("Acquire"); got != acquires {
		w.Errorf("the shard was acquired %d times before its handlers had returned", got-acquires)
	}

	w.sleep(returning + 4*poll)
	if got := n.link.count("Acquire"); got != acquires+1 || len(returned) < perShard {
		w.Errorf("the shard was acquired %d times once its %d handlers had returned, want once",
			got-acquires, len(returned))
	}

	w.sleep(3 * ttl)
	w.wantCounts(0, 0, 3*perShard+1, 0)
}
