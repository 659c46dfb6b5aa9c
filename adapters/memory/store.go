package memory

import (
	"context"
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

// Options are how a backend is made. The zero value is fit for use.
type Options struct {
	// Clock is the backend's only clock. It may step back. It is called with
	// locks held, from many goroutines at once, and must not call the store. nil
	// is time.Now, which is virtual inside a synctest bubble.
	Clock func() time.Time
}

// Store is a handle on a backend in memory. It implements ports.ShardStore,
// ports.Notifier and ports.Settler, is safe for any number of goroutines and
// needs no closing. Use New; the zero value is not fit for use.
//
// No call waits for anything but another call on the same shard, so a context
// is looked at once, when a call begins.
type Store struct {
	b *backend
}

// New makes an empty backend and a first handle on it.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Store{b: &backend{
		clock:  o.Clock,
		queues: make(map[string]*queue),
		nodes:  make(map[string]ports.Node),
	}}
}

// Open gives another handle on the same backend, as another process has it.
func (s *Store) Open() *Store { return &Store{b: s.b} }

// backend is what all handles share. Locks are taken in the order backend, use of
// a queue, shard, then those of history and subscribers.
type backend struct {
	clock func() time.Time

	mu     sync.RWMutex
	queues map[string]*queue
	nodes  map[string]ports.Node
}

// now is the backend's clock. For what happens to a shard it is read under the
// shard's lock, so that a wait for the lock is not slept through.
func (b *backend) now() core.Instant { return core.InstantOf(b.clock()) }

func (b *backend) queue(ctx context.Context, name string) (*queue, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory store: the call was not begun: %w", err)
	}
	b.mu.RLock()
	q := b.queues[name]
	b.mu.RUnlock()
	if q == nil {
		return nil, storekit.UnknownQueue(name)
	}
	return q, nil
}

func (b *backend) shard(ctx context.Context, id core.Shard) (*shard, error) {
	q, err := b.queue(ctx, id.Queue)
	if err != nil {
		return nil, err
	}
	return q.shard(id.Index)
}
