package skein

import (
	"context"
	"fmt"
	"iter"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func validateIDs(ids []string) error {
	for at, id := range ids {
		if err := core.ValidateID(id); err != nil {
			return fmt.Errorf("id %d of %d: %w", at+1, len(ids), err)
		}
	}
	return nil
}

// onEntries carries an action out on entries that are named, in steps of as many
// as chunks allows.
func onEntries[E any](
	ctx context.Context, i *Inspector, a *action, queue string, entries []E,
	id func(E) string, chunks func([]E) iter.Seq[[]E], step func(core.Shard, []E) (ports.StepReply, error),
) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	shards, err := i.shards(ctx, queue)
	if err != nil {
		return err
	}
	for at, entries := range byShard(entries, shards, id) {
		shard := core.Shard{Queue: queue, Index: at}
		for chunk := range chunks(entries) {
			reply, err := persist(ctx, func() (ports.StepReply, error) { return step(shard, chunk) })
			if err != nil {
				return fmt.Errorf("shard %v: %w", shard, err)
			}
			a.pass(len(chunk), reply.Handled)
		}
	}
	return nil
}

// byShard parts entries by the shard that their ids live in.
func byShard[E any](entries []E, shards int, id func(E) string) [][]E {
	parts := make([][]E, max(1, shards))
	for _, e := range entries {
		at := core.ShardOf(id(e), shards)
		parts[at] = append(parts[at], e)
	}
	return parts
}

// shards is the shard count of a queue.
func (i *Inspector) shards(ctx context.Context, queue string) (int, error) {
	queues, err := persist(ctx, func() ([]ports.Queue, error) { return i.store.Queues(ctx) })
	if err != nil {
		return 0, err
	}
	for at := range queues {
		if queues[at].Name == queue {
			return queues[at].Shards, nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrUnknownQueue, queue)
}
