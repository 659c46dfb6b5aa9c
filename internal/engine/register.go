package engine

import (
	"context"
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// declareAll declares the queues, however long the store takes to answer. It returns an error only
// if waiting can't help, and nil if ctx ends.
func (n *node) declareAll(ctx context.Context) error {
	status := n.newLoopStatus("declare")
	var retry backoff
	for _, q := range n.cfg.Queues {
		for {
			err := n.declare(q)
			if err == nil {
				break
			}
			if permanent(err) {
				return n.nameServers(err)
			}
			status.failed(err)
			if !pause(retry.next(), ctx.Done()) {
				return nil
			}
		}
		status.ok()
	}
	return nil
}

// permanent reports whether an error of the first declaration stays however long the node waits.
// Once the node works, it waits all the same.
func permanent(err error) bool {
	return errors.Is(err, ports.ErrShardCountMismatch) || errors.Is(err, ports.ErrQueueMismatch) ||
		errors.Is(err, core.ErrInvalidQueue) || errors.Is(err, ports.ErrUnusable)
}

// declare declares one queue.
func (n *node) declare(q *Queue) error {
	ctx, cancel := n.callContext()
	defer cancel()
	r, err := n.store.Declare(ctx, ports.DeclareRequest{Queue: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs, Merge: q.Merge})
	if refused := errors.Is(err, ports.ErrShardCountMismatch); q.refused.Swap(refused) != refused {
		signal(n.nodesChanged) // the node no longer serves it, or serves it again
	}
	if err != nil {
		return DeclareError(q.Name, err)
	}
	q.generation.Store(r.Generation)
	return nil
}

// leave sends the last counts and withdraws the announcement. If that fails, the announcement
// expires by itself.
func (n *node) leave() {
	ctx, cancel := n.lastContext()
	defer cancel()
	n.sendLastTallies(ctx)
	if err := n.store.Retire(ctx, n.cfg.Owner); err != nil {
		n.log.Debug("retire failed", "error", err)
	}
}
