package skein

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// What Forget refuses.
var (
	// ErrNotEmpty is a queue that holds jobs or dead letters.
	ErrNotEmpty = ports.ErrNotEmpty
	// ErrLeaseHeld is a queue that a server works.
	ErrLeaseHeld = ports.ErrLeaseHeld
)

// Forget removes a queue that is empty and that no server works: its record, its
// counters and its history. Its name is free after it, also for a queue with
// another shard count. Stop what pushes to it first: a client or server that still
// has the queue declares it again.
//
// Errors: ErrUnknownQueue; ErrNotEmpty; ErrLeaseHeld while a server works it, or
// for a lease TTL after one was killed.
func (i *Inspector) Forget(ctx context.Context, queue string) error {
	tried := false
	return i.control(ctx, queue, "forget", func(ctx context.Context, queue string) error {
		err := i.store.Forget(ctx, queue)
		if tried && errors.Is(err, ports.ErrUnknownQueue) {
			return nil // an earlier call has forgotten it, without an answer
		}
		tried = true
		return err
	})
}

// Recount counts the jobs and dead letters of a queue one by one, shard by shard,
// and corrects what Stats says of them. It is for repair: a store whose counts
// never differ changes nothing. It takes as long as the queue is large, and holds
// up a shard's work while it counts there. It returns the shards whose counts were
// wrong, up to the error if there is one.
//
// Errors: ErrUnknownQueue; the context's; the store's own.
func (i *Inspector) Recount(ctx context.Context, queue string) (wrong []Recounted, err error) {
	queues, err := persist(ctx, func() ([]ports.QueueStats, error) { return i.store.Stats(ctx, []string{queue}) })
	if err != nil {
		return nil, fmt.Errorf("recount: %w", err)
	}
	for _, shard := range core.Shards(queue, queues[0].Queue.Shards) {
		reply, err := persist(ctx, func() (ports.RecountReply, error) { return i.store.Recount(ctx, shard) })
		if err != nil {
			return wrong, fmt.Errorf("recount %v: %w", shard, err)
		}
		now := queues[0].Now
		if before, after := countsOf(&reply.Before, now), countsOf(&reply.After, now); before != after {
			wrong = append(wrong, Recounted{Shard: shard, Before: before, After: after})
		}
	}
	return wrong, nil
}

// Recounted is a shard that Recount has corrected.
type Recounted struct {
	Shard core.Shard
	// Before is what Stats said, After what is there.
	Before, After Counts
}
