package model

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Declare implements ports.Producer.
func (m *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := ctx.Err(); err != nil {
		return ports.DeclareReply{}, fmt.Errorf("declare %q: %w", r.Queue, err)
	}

	q, ok := m.queues[r.Queue]
	if !ok {
		q = newQueue(r)
		m.queues[r.Queue] = q
	}

	if r.Shards != q.record.Shards {
		return ports.DeclareReply{}, fmt.Errorf("%w: %q has %d shards, not %d",
			ports.ErrShardCountMismatch, r.Queue, q.record.Shards, r.Shards)
	}
	if r.IndexIDs != q.record.IndexIDs {
		return ports.DeclareReply{}, fmt.Errorf("%w: IndexIDs of %q is %v",
			ports.ErrQueueMismatch, r.Queue, q.record.IndexIDs)
	}
	if r.Merge != q.record.Merge {
		return ports.DeclareReply{}, fmt.Errorf("%w: the merge rule of %q is %v",
			ports.ErrQueueMismatch, r.Queue, q.record.Merge)
	}

	return ports.DeclareReply{Generation: q.record.Generation}, nil
}

func newQueue(r ports.DeclareRequest) *queue {
	q := &queue{
		record: ports.Queue{
			Name:       r.Queue,
			Shards:     r.Shards,
			Generation: 1,
			IndexIDs:   r.IndexIDs,
			Merge:      r.Merge,
		},
		records: map[recordKey]core.Stats{},
		permits: map[string]permit{},
	}
	for _, at := range core.Shards(r.Queue, r.Shards) {
		q.shards = append(q.shards, &shard{
			at:      at,
			rule:    r.Merge,
			queued:  map[string]core.Job{},
			claimed: map[string]claimedJob{},
			dead:    map[string]core.DeadLetter{},
			groups:  map[string]core.Group{},

			schedules: map[core.ScheduleKey]core.Schedule{},
			past:      map[string]core.Past{},
			once:      map[core.OnceKey]core.Instant{},
		})
	}
	return q
}

// Push implements ports.Producer.
func (m *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}

	q, err := m.queue(ctx, r.Queue)
	if err == nil {
		err = q.agrees(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.PushReply{}, &ports.PushError{Entries: positions(len(r.Entries)), Err: err}
	}

	reply := ports.PushReply{Now: m.Now()}
	for remaining := r.Entries; len(remaining) > 0; {
		sh := q.shards[core.ShardOf(remaining[0].ID, r.Shards)]
		if r.DropStale && sh.mark(remaining[0].ID).Covers(remaining[0].Payload.Score) {
			sh.stale++
			reply.Stale++
			remaining = remaining[1:]
			continue
		}
		if !sh.accept(&remaining[0], r.Stamped, reply.Now) {
			sh.repeated++
			reply.Repeated++
			remaining = remaining[1:]
			continue
		}

		n := alike(remaining, r.DropStale)
		sh.push(remaining[:n], r.Rule, &reply)
		remaining = remaining[n:]
	}
	return reply, nil
}

// accept reports whether an entry is no repeat, and remembers it if it has OnceIn.
func (s *shard) accept(e *core.Entry, stamped bool, now core.Instant) bool {
	if e.OnceIn == 0 {
		return true
	}
	key := e.OnceKey(stamped)
	if core.Repeats(s.once[key], now) {
		return false
	}
	s.once[key] = e.OnceUntil(now)
	return true
}

// alike returns the number of leading entries with the same id, time and tags. They merge together,
// because it would take long to merge each one with all payloads of the job. Entries that may be
// dropped, as stale or as repeats, don't merge together.
func alike(entries []core.Entry, single bool) int {
	n := 1
	for !single && n < len(entries) && entries[n].OnceIn == 0 &&
		entries[n].ID == entries[0].ID && entries[n].When == entries[0].When &&
		entries[n].Tags == entries[0].Tags {
		n++
	}
	return n
}

func positions(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
