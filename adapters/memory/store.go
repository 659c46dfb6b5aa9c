package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

var (
	_ ports.ShardStore = (*Store)(nil)
	_ ports.Notifier   = (*Store)(nil)
	_ ports.Settler    = (*Store)(nil)
)

// Options are the options of a backend. The zero value is ready.
type Options struct {
	// Clock is the backend's only clock. It may step back. It is called from many goroutines at
	// once, while the store holds locks, so it must not call the store. nil means time.Now, which
	// is virtual inside a synctest bubble.
	Clock func() time.Time
}

// Store is a handle on a backend in memory. It implements [ports.ShardStore], [ports.Notifier] and
// [ports.Settler]. Make it with [New]; the zero value is unusable. It is safe for concurrent use
// and need not be closed.
//
// A call waits only for locks that other calls hold for a short time. So a context is checked when
// its call begins, and does not interrupt the call later.
type Store struct {
	b *backend
}

// New returns a handle on a new, empty backend.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Store{b: &backend{
		clock:  o.Clock,
		id:     rand.Text(),
		queues: make(map[string]*queue),
		nodes:  make(map[string]node),
	}}
}

// Open returns another handle on the same backend, as another process would have it.
func (s *Store) Open() *Store { return &Store{b: s.b} }

// backend is shared by all handles. Locks are taken in this order: the backend's, a queue's
// forgetMu, a shard's, those of history, of the audit, of permits, of limiters, of tracked ids and of
// subscribers.
type backend struct {
	clock func() time.Time

	mu     sync.RWMutex
	id     string
	queues map[string]*queue
	nodes  map[string]node
	audit  audit
	// subscribers are those to changes of the list of nodes.
	subscribers []*storekit.Subscriber
}

// now reads the backend's clock. Changes of a shard read it under the shard's lock, so the time of
// a change is never before the lock was taken.
func (b *backend) now() core.Instant { return core.InstantOf(b.clock()) }

// queue returns a declared queue.
func (b *backend) queue(ctx context.Context, name string) (*queue, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	b.mu.RLock()
	q := b.queues[name]
	b.mu.RUnlock()
	if q == nil {
		return nil, storekit.UnknownQueue(name)
	}
	return q, nil
}

// shard returns a shard of a declared queue.
func (b *backend) shard(ctx context.Context, id core.Shard) (*shard, error) {
	q, err := b.queue(ctx, id.Queue)
	if err != nil {
		return nil, err
	}
	return q.shard(id.Index)
}

// checkContext returns an error if the context of a call has ended before the call began.
func checkContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory store: %w: %w", ports.ErrNotBegun, err)
	}
	return nil
}
