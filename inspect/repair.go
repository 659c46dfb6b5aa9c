package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Forget removes a queue: its record, its counters and its history. The queue must be empty, and no
// server may have leased a shard of it. After that the name is free, even for a queue with another
// shard count. Stop all clients and servers that use the queue first; otherwise they declare it
// again.
//
// Forget returns [ErrUnknownQueue], [ErrNotEmpty], or [ErrLeaseHeld] while a server has leased a
// shard of the queue. The lease of a server that was killed lasts until it runs out.
func (i *Inspector) Forget(ctx context.Context, queue string) error {
	tried := false
	return i.control(ctx, queue, "forget", func(s Store, ctx context.Context, queue string) error {
		err := s.Forget(ctx, queue)
		if tried && errors.Is(err, ErrUnknownQueue) {
			return nil // an earlier call has forgotten it, but its answer was lost
		}
		tried = true
		return err
	})
}

// Recount counts the jobs and dead letters of a queue one by one, shard by shard and in steps, and
// corrects the counts that Stats and Groups return. It is for repair: if the counts are right, it
// changes nothing. Servers continue to work meanwhile.
//
// On Redis it also restores the record of a shard that was lost, so that the shard is served again
// without what it held, and the record of a queue whose shards still have it. The duration depends
// on the size of the queue. A recount that was stopped starts from the beginning.
//
// progress is called after each step, from the caller's goroutine: Done and Total are entries, and
// Handled is the number of shards whose counts were wrong, or may have been: see
// [Recounted.Repeated]. A shard whose recount has restored records counts as well. nil means no
// call. Recount returns these shards. If there is an error, it
// returns those before the error.
//
// Recount returns [ErrUnknownQueue], the cause of a context that has ended, and errors of the
// store.
func (i *Inspector) Recount(ctx context.Context, queue string, progress func(Progress)) (wrong []Recounted, err error) {
	d := i.begin(ctx, "recount", queue, nil).start(ctx)
	defer func() { d.end(ctx, len(wrong), err) }()

	a := newAction("recount", progress)
	stats, blind, err := i.recountable(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("recount: %w", err)
	}

	restored := 0
	defer func() {
		if restored > 0 {
			i.log.Warn("shards that had lost their records have new ones; their jobs may be lost",
				"queue", queue, "count", restored)
		}
	}()

	a.Total = stats.Entries()
	for at := range stats.Shards {
		s := stats.Shards[at]
		r, err := i.recountShard(ctx, a, &s, stats.Now)
		if err != nil {
			return wrong, fmt.Errorf("recount %v: %w", s.Shard, err)
		}
		restored += r.RestoredShards
		if r.corrected() {
			wrong = append(wrong, r)
		}
	}

	if blind {
		if _, err := i.queueStats(ctx, queue); err != nil {
			return wrong, fmt.Errorf("recount: %w", err)
		}
	}
	return wrong, nil
}

// recountShard takes all steps of the recount of a shard. Its share of the progress is the number
// of entries that it had when the action began.
func (i *Inspector) recountShard(
	ctx context.Context,
	a *action,
	s *ports.ShardStats,
	now core.Instant,
) (Recounted, error) {
	counts := func(c ports.Counts) Counts {
		s.Counts = c
		return shardStatsOf(s, now).Counts
	}

	var sum ports.RecountReply
	shard := Recounted{Shard: s.Shard}
	left := s.Entries()

	for r := (ports.RecountRequest{Shard: s.Shard}); ; r.After = sum.Next {
		calls := 0
		reply, err := persist(ctx, i, func(s Store) (ports.RecountReply, error) {
			calls++
			return s.Recount(ctx, r)
		})
		if err != nil {
			return shard, err
		}

		shard.Repeated = shard.Repeated || calls > 1
		if r.After == "" {
			sum = reply
		} else {
			sum = sum.Then(reply)
		}

		if sum.Next == "" {
			shard.Before, shard.After = counts(sum.Before), counts(sum.After)
			shard.RestoredShards, shard.RestoredQueue = sum.RestoredShards, sum.RestoredQueue
			wrong := 0
			if shard.corrected() {
				wrong = 1
			}
			a.Pass(left, wrong) // entries that were not counted no longer exist
			return shard, nil
		}

		done := max(0, min(reply.Counted, left-1)) // the last step has something to report
		left -= done
		a.Pass(done, 0)
	}
}

// recountable returns the statistics of a queue with all its shards. Shards whose statistics could
// not be read are empty, and last: a Recount repairs a shard that has lost its record, and may
// wait for others. blind is true if no shard's statistics could be read.
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

// Recounted is a shard whose counts Recount has corrected, or may have corrected, or whose recount
// has restored lost records.
type Recounted struct {
	Shard core.Shard
	// Before is what Stats would return without the recount. After is what it returns now.
	Before, After Counts
	// Repeated is true if a call without a reply was repeated. If the first call had corrected the
	// counts, Before has that correction already, and may equal After.
	Repeated bool
	// RestoredShards is the number of shards that had lost their records and have new ones since the
	// recount of this shard. If the queue had lost its own record as well, RestoredQueue is true, and
	// the recount of one shard has restored the records of all.
	RestoredShards int
	RestoredQueue  bool
}

// corrected reports whether the counts of the shard were corrected, or records restored, as far as
// is known.
func (r *Recounted) corrected() bool {
	return r.Repeated || r.Before != r.After || r.RestoredShards > 0 || r.RestoredQueue
}
