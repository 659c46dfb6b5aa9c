package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// declareAll declares the queues, however long the store takes to be there.
func (e *Engine) declareAll(ctx context.Context) error {
	p := e.newLoopStatus("declare")
	var retry backoff
	for _, q := range e.cfg.Queues {
		for {
			err := e.declare(q)
			if err == nil {
				break
			}
			if permanent(err) {
				return err
			}
			p.failed(err)
			if !pause(retry.next(), ctx.Done()) {
				return nil
			}
		}
		p.ok()
	}
	return nil
}

// permanent reports whether waiting can't help. Once the node works, it waits all the
// same.
func permanent(err error) bool {
	return errors.Is(err, ports.ErrShardCountMismatch) || errors.Is(err, ports.ErrQueueMismatch) ||
		errors.Is(err, core.ErrInvalidQueue) || errors.Is(err, ports.ErrUnusable)
}

// resharding is the page that says how to change a shard count.
const resharding = "https://github.com/skeinq/skein/blob/main/docs/guide.md#another-shard-count"

// DeclareError is the error of a declaration that failed, with what to do where a
// page says it.
func DeclareError(queue string, err error) error {
	if errors.Is(err, ports.ErrShardCountMismatch) {
		return fmt.Errorf("declare queue %q: %w; to change it, see %s", queue, err, resharding)
	}
	return fmt.Errorf("declare queue %q: %w", queue, err)
}

func (e *Engine) declare(q *Queue) error {
	ctx, cancel := context.WithTimeout(e.storeCtx, e.cfg.LeaseTTL/3)
	defer cancel()
	r, err := e.store.Declare(ctx, ports.DeclareRequest{Queue: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs})
	if err != nil {
		return DeclareError(q.Name, err)
	}
	q.generation.Store(r.Generation)
	return nil
}
