package skein

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// held is how many entries of a shard an action is about.
type held func(*ports.Counts) int64

// drain is an action on all of a kind that the store picks by itself. It ends:
// what comes in meanwhile does not count.
type drain struct {
	store InspectorStore
	*action
	held held
	step func(ctx context.Context, s core.Shard, limit int, began core.Instant) (ports.StepReply, error)
}

func (d *drain) run(ctx context.Context, queue string) (Result, error) {
	stats, err := persist(ctx, func() (ports.QueueStats, error) { return queueState(ctx, d.store, queue) })
	if err != nil {
		return d.end(err)
	}
	for at := range stats.Shards {
		d.progress.Total += int(d.held(&stats.Shards[at].Counts))
	}
	for at := range stats.Shards {
		s := &stats.Shards[at]
		if err := d.shard(ctx, s.Shard, int(d.held(&s.Counts)), stats.Now); err != nil {
			return d.end(fmt.Errorf("shard %v: %w", s.Shard, err))
		}
	}
	return d.end(nil)
}

// shard repeats the step until it leaves nothing, or has handled as many entries
// as the shard held.
func (d *drain) shard(ctx context.Context, shard core.Shard, left int, began core.Instant) error {
	for more := true; more && left > 0; {
		reply, err := persist(ctx, func() (ports.StepReply, error) {
			return d.step(ctx, shard, min(left, ports.MaxStep), began)
		})
		if err != nil {
			return err
		}
		d.pass(reply.Handled, reply.Handled)
		left -= reply.Handled
		more = reply.More && reply.Handled > 0
	}
	d.pass(left, 0)
	return nil
}

// queueState is the state of one queue.
func queueState(ctx context.Context, store InspectorStore, queue string) (ports.QueueStats, error) {
	stats, err := store.Stats(ctx, []string{queue})
	if err != nil {
		return ports.QueueStats{}, err
	}
	if len(stats) != 1 {
		return ports.QueueStats{}, fmt.Errorf("%w: %q", ErrUnknownQueue, queue)
	}
	return stats[0], nil
}
