package memory

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// firstGeneration is that of a queue which was never resharded.
const firstGeneration = 1

// queue is a declared queue. Its record and its shards never change, except for fields with a lock
// of their own.
type queue struct {
	record   ports.Queue // without Paused, Merge and Settings
	paused   atomic.Bool
	merge    atomic.Pointer[core.MergeRule]
	settings settings
	shards   []*shard
	history  history
	permits  permits
	tracked  tracked
	limiters limiters

	// forgetMu is locked for reading by calls that must not reach a forgotten queue.
	forgetMu  sync.RWMutex
	forgotten bool
}

// Declare implements [ports.Producer].
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := checkContext(ctx); err != nil {
		return ports.DeclareReply{}, err
	}

	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := s.b.queues[r.Queue]
	if q == nil {
		q = newQueue(r)
		s.b.queues[r.Queue] = q
	}

	if err := storekit.CheckDeclared(r, q.view()); err != nil {
		return ports.DeclareReply{}, err
	}
	return ports.DeclareReply{Generation: q.record.Generation}, nil
}

func newQueue(r ports.DeclareRequest) *queue {
	q := &queue{
		record: ports.Queue{Name: r.Queue, Shards: r.Shards, Generation: firstGeneration, IndexIDs: r.IndexIDs},
		shards: make([]*shard, r.Shards),
	}
	q.merge.Store(&r.Merge)
	q.permits = permits{queue: q, byOwner: make(map[string]permit)}
	for i, id := range core.Shards(r.Queue, r.Shards) {
		q.shards[i] = newShard(q, id)
	}
	return q
}

// Forget implements [ports.Operator]. It is atomic for the queue.
func (s *Store) Forget(ctx context.Context, name string) error {
	if err := checkContext(ctx); err != nil {
		return err
	}

	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := s.b.queues[name]
	if q == nil {
		return storekit.UnknownQueue(name)
	}

	q.forgetMu.Lock()
	defer q.forgetMu.Unlock()
	for _, check := range []func(*shard) error{(*shard).checkEmpty, s.b.checkUnleased} {
		for _, sh := range q.shards {
			if err := check(sh); err != nil {
				return err
			}
		}
	}

	q.forgotten = true
	delete(s.b.queues, name)
	for _, sh := range q.shards {
		sh.endSubscriptions()
	}
	q.permits.endSubscriptions()
	return nil
}

// checkEmpty returns ErrNotEmpty unless the shard is empty.
func (s *shard) checkEmpty() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.counts(); c.Fresh+c.Retrying+c.Claimed+c.Dead > 0 || len(s.calendar.byKey) > 0 {
		return storekit.NotEmpty(s.id)
	}
	return nil
}

// checkUnleased returns a *HeldError if the shard is leased.
func (b *backend) checkUnleased(s *shard) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.now()
	if !s.lease.excludes(now) {
		return nil
	}
	return &ports.HeldError{Shard: s.id, Owner: s.lease.owner, Remaining: s.lease.remaining(now)}
}

// isForgotten reports whether the queue was forgotten.
func (q *queue) isForgotten() bool {
	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	return q.forgotten
}

// Pause implements [ports.Operator].
func (s *Store) Pause(ctx context.Context, name string) error {
	q, err := s.b.queue(ctx, name)
	if err != nil {
		return err
	}
	q.paused.Store(true)
	return nil
}

// Resume implements [ports.Operator]. It visits each shard under the shard's lock. A push that
// still saw the pause has released that lock before, so its job gets a wake-up.
func (s *Store) Resume(ctx context.Context, name string) error {
	q, err := s.b.queue(ctx, name)
	if err != nil {
		return err
	}
	if !q.paused.Swap(false) {
		return nil
	}
	for _, sh := range q.shards {
		sh.mu.Lock()
		sh.wakeIfEarlier(core.Head{})
		sh.mu.Unlock()
	}
	return nil
}

// SetMerge implements [ports.Operator].
func (s *Store) SetMerge(ctx context.Context, r ports.SetMergeRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return err
	}
	if err := storekit.CheckMerge(r.Queue, *q.merge.Load(), r.Merge); err != nil {
		return err
	}
	q.merge.Store(&r.Merge)
	return nil
}

// view returns the queue's record as it is now.
func (q *queue) view() ports.Queue {
	v := q.record
	v.Paused, v.Merge, v.Settings = q.paused.Load(), *q.merge.Load(), q.settings.copy()
	return v
}

// shard returns the shard with an index, or ErrInvalidRequest if it does not exist.
func (q *queue) shard(index int) (*shard, error) {
	if index < 0 || index >= len(q.shards) {
		return nil, storekit.NoSuchShard(core.Shard{Queue: q.record.Name, Index: index})
	}
	return q.shards[index], nil
}

// checkLayout compares the caller's layout with the queue's. It needs forgetMu.
func (q *queue) checkLayout(shards int, generation int64) error {
	if q.forgotten {
		return storekit.UnknownQueue(q.record.Name)
	}
	asked := storekit.Layout{Shards: shards, Generation: generation}
	actual := storekit.Layout{Shards: q.record.Shards, Generation: q.record.Generation}
	if asked != actual {
		return storekit.LayoutMismatch(q.record.Name, asked, actual)
	}
	return nil
}
