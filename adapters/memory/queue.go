package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// firstGeneration is that of a queue which was never resharded.
const firstGeneration = 1

// queue is a declared queue. All but paused and what has locks of its own stays
// as it was made.
type queue struct {
	record  ports.Queue
	paused  atomic.Bool
	shards  []*shard
	history history

	// use is held for reading by what must not reach a forgotten queue.
	use       sync.RWMutex
	forgotten bool
}

func newQueue(r ports.DeclareRequest) *queue {
	q := &queue{
		record: ports.Queue{Name: r.Queue, Shards: r.Shards, Generation: firstGeneration, IndexIDs: r.IndexIDs},
		shards: make([]*shard, r.Shards),
	}
	for i, id := range core.Shards(r.Queue, r.Shards) {
		q.shards[i] = newShard(q, id)
	}
	return q
}

// view is the queue's record as it is now.
func (q *queue) view() ports.Queue {
	v := q.record
	v.Paused = q.paused.Load()
	return v
}

func (q *queue) shard(index int) (*shard, error) {
	if index < 0 || index >= len(q.shards) {
		return nil, fmt.Errorf("%w: %q has %d shards, none with number %d",
			ports.ErrInvalidRequest, q.record.Name, len(q.shards), index)
	}
	return q.shards[index], nil
}

// gone reports whether the queue was forgotten.
func (q *queue) gone() bool {
	q.use.RLock()
	defer q.use.RUnlock()
	return q.forgotten
}

// check compares the layout that a caller believes in with the queue's. It needs
// q.use.
func (q *queue) check(shards int, generation int64) error {
	if q.forgotten {
		return unknownQueue(q.record.Name)
	}
	if shards == q.record.Shards && generation == q.record.Generation {
		return nil
	}
	return fmt.Errorf("%w: %q has %d shards in generation %d, not %d in %d; declare it again",
		ports.ErrShardCountMismatch, q.record.Name, q.record.Shards, q.record.Generation, shards, generation)
}

// Declare implements ports.Producer.
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := ctx.Err(); err != nil {
		return ports.DeclareReply{}, fmt.Errorf("declare %q: %w", r.Queue, err)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := s.b.queues[r.Queue]
	if q == nil {
		q = newQueue(r)
		s.b.queues[r.Queue] = q
	}
	if q.record.Shards != r.Shards {
		return ports.DeclareReply{}, fmt.Errorf("%w: %q has %d shards, not %d; its count is permanent",
			ports.ErrShardCountMismatch, r.Queue, q.record.Shards, r.Shards)
	}
	if q.record.IndexIDs != r.IndexIDs {
		return ports.DeclareReply{}, fmt.Errorf("%w: %q has IndexIDs %t, which is permanent",
			ports.ErrQueueMismatch, r.Queue, q.record.IndexIDs)
	}
	return ports.DeclareReply{Generation: q.record.Generation}, nil
}

// Pause implements ports.Operator.
func (s *Store) Pause(ctx context.Context, name string) error {
	q, err := s.b.queue(ctx, name)
	if err != nil {
		return err
	}
	q.paused.Store(true)
	return nil
}

// Resume implements ports.Operator. A push that saw the pause came before the
// look at its shard below, so no job is left without a wake-up.
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
