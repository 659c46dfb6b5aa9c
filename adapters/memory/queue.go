package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
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
		return nil, storekit.NoSuchShard(core.Shard{Queue: q.record.Name, Index: index})
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
		return storekit.UnknownQueue(q.record.Name)
	}
	asked, actual := storekit.Layout{Shards: shards, Generation: generation}, storekit.Layout{Shards: q.record.Shards, Generation: q.record.Generation}
	if asked != actual {
		return storekit.LayoutMismatch(q.record.Name, asked, actual)
	}
	return nil
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
	if err := storekit.CheckDeclared(r, q.record); err != nil {
		return ports.DeclareReply{}, err
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
