package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Forget removes a queue that is empty and that no server works: its record, its
// counters and its history. Its name is free after it, also for a queue with
// another shard count. Stop what pushes to it first: a client or server that still
// has the queue declares it again.
//
// Errors: [ErrUnknownQueue]; [ErrNotEmpty]; [ErrLeaseHeld] while a server works it,
// or until the lease of one that was killed runs out.
func (i *Inspector) Forget(ctx context.Context, queue string) error {
	tried := false
	return i.control(ctx, queue, "forget", func(s Store, ctx context.Context, queue string) error {
		err := s.Forget(ctx, queue)
		if tried && errors.Is(err, ErrUnknownQueue) {
			return nil // an earlier call has forgotten it, without an answer
		}
		tried = true
		return err
	})
}

// Recount counts the jobs and dead letters of a queue one by one, shard by shard,
// and corrects the counts that Stats returns. It is for repair: where the counts
// are right it changes nothing. On Redis it also makes the record of a shard anew that
// was lost, so that the shard is worked again without what it held, and puts back the
// record of a queue that its shards still have. It takes as long as the queue is large, and a
// shard's work waits while it counts there. It returns the shards whose counts were
// wrong, up to the error if there is one.
//
// Errors: [ErrUnknownQueue]; the context's; the store's own.
func (i *Inspector) Recount(ctx context.Context, queue string) (wrong []Recounted, err error) {
	d := i.begin(ctx, "recount", queue, nil).start(ctx)
	defer func() { d.end(ctx, len(wrong), err) }()
	stats, blind, err := i.recountable(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("recount: %w", err)
	}
	for at := range stats.Shards {
		shard := stats.Shards[at].Shard
		reply, err := persist(ctx, i, func(s Store) (ports.RecountReply, error) { return s.Recount(ctx, shard) })
		if err != nil {
			return wrong, fmt.Errorf("recount %v: %w", shard, err)
		}
		counts := func(c ports.Counts) Counts {
			s := stats.Shards[at]
			s.Counts = c
			return shardStatsOf(&s, stats.Now).Counts
		}
		if before, after := counts(reply.Before), counts(reply.After); before != after {
			wrong = append(wrong, Recounted{Shard: shard, Before: before, After: after})
		}
	}
	if blind {
		if _, err := i.queueStats(ctx, queue); err != nil {
			return wrong, fmt.Errorf("recount: %w", err)
		}
	}
	return wrong, nil
}

// recountable returns the statistics of a queue with all its shards. Those that could not be looked
// at are empty, and last: a Recount mends one that has lost its record, and may wait for others.
// blind says that none could be looked at.
func (i *Inspector) recountable(ctx context.Context, queue string) (stats ports.QueueStats, blind bool, err error) {
	stats, err = i.queueStats(ctx, queue)
	if err != nil {
		queues, failed := i.Queues(ctx)
		at := slices.IndexFunc(queues, func(q Queue) bool { return q.Name == queue })
		if failed != nil || at < 0 {
			return stats, false, err
		}
		stats.Unreached, blind = core.Shards(queue, queues[at].Shards), true
	}
	for _, shard := range stats.Unreached {
		stats.Shards = append(stats.Shards, ports.ShardStats{Shard: shard})
	}
	return stats, blind, nil
}

// Recounted is a shard that Recount has corrected.
type Recounted struct {
	Shard core.Shard
	// Before is what Stats returned, After what is there.
	Before, After Counts
}
