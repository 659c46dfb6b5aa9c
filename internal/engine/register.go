package engine

import (
	"context"
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// declareAll declares the queues, however long the store takes to answer. It returns an error only
// if waiting can't help, and nil if ctx ends.
func (n *node) declareAll(ctx context.Context) error {
	status := n.outages.Loop("declare", core.Shard{})
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
			status.Called(err)
			if !pause(retry.next(), ctx.Done()) {
				return nil
			}
		}
		status.Called(nil)
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
	r, err := n.store.Declare(ctx, ports.DeclareRequest{
		Queue:    q.Name,
		Shards:   q.Shards,
		IndexIDs: q.IndexIDs,
		Merge:    q.Merge,
	})

	if refused := errors.Is(err, ports.ErrShardCountMismatch); q.refused.Swap(refused) != refused {
		signal(n.nodesChanged) // the node no longer serves it, or serves it again
	}
	if err != nil {
		return report.DeclareError(q.Name, err)
	}

	q.generation.Store(r.Generation)
	return nil
}

// nameServers adds to the error of a declaration with another shard count which servers serve the
// queue. It returns other errors unchanged, and also a mismatch about which the store has no more
// information.
func (n *node) nameServers(err error) error {
	var mismatch *report.MismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	ctx, cancel := n.callContext()
	defer cancel()
	reply, failed := n.store.Nodes(ctx)
	if failed != nil {
		return err
	}
	return mismatch.ServedBy(reply.Nodes, reply.Now)
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
