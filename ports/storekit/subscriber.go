package storekit

import (
	"context"
	"sync"

	"github.com/skeinq/skein/core"
)

// Subscriber is the store's side of one channel that Wakeups of a [ports.Notifier] returns. The
// store may call Wake at any time. Shards that the receiver has not yet received are kept as an
// ordered set of at most all requested shards. So a slow receiver costs no further memory and
// delays no other receiver.
//
// Make it with [NewSubscriber]. It is safe for concurrent use. On a nil Subscriber Wake, WakeAll
// and End do nothing, and Channel returns a channel on which nothing is sent.
type Subscriber struct {
	shards []core.Shard  // requested, each once
	signal chan struct{} // holds a token while shards are pending
	ended  chan struct{} // closed by End

	mu      sync.Mutex
	pending map[core.Shard]bool // has each of shards as a key
	ring    []core.Shard        // the pending ones, with room for all
	first   int                 // position of the oldest in ring
	size    int                 // how many are pending
}

// NewSubscriber returns a [Subscriber] for the shards that a receiver requested. A shard that
// occurs twice counts once.
func NewSubscriber(shards []core.Shard) *Subscriber {
	s := &Subscriber{
		signal:  make(chan struct{}, 1),
		ended:   make(chan struct{}),
		pending: make(map[core.Shard]bool, len(shards)),
	}
	for _, shard := range shards {
		if _, known := s.pending[shard]; !known {
			s.pending[shard] = false
			s.shards = append(s.shards, shard)
		}
	}
	s.ring = make([]core.Shard, len(s.shards))
	return s
}

// Wake sends the receiver those of the given shards that it requested and that are not already
// pending. Wake never blocks and does not allocate.
func (s *Subscriber) Wake(shards ...core.Shard) {
	if s == nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, shard := range shards {
		if pending, asked := s.pending[shard]; asked && !pending {
			s.pending[shard] = true
			s.ring[(s.first+s.size)%len(s.ring)] = shard
			s.size++
		}
	}

	if s.size == 0 {
		return
	}

	// One signal that is not taken yet is enough for all pending shards.
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// WakeAll is Wake for every requested shard. It is for a store that may have missed wake-ups, for
// example while its connection was lost.
func (s *Subscriber) WakeAll() {
	if s != nil {
		s.Wake(s.shards...)
	}
}

// End closes the channel, for a store that can send no more wake-ups. Pending shards are dropped. A
// repeated call changes nothing.
func (s *Subscriber) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
}

// Channel returns the channel for the receiver. The channel is closed when ctx ends or End is
// called, after cleanup has returned. In cleanup the store forgets the Subscriber; cleanup may be
// nil. Call Channel once: it starts a goroutine, which lasts as long as the channel is open.
func (s *Subscriber) Channel(ctx context.Context, cleanup func()) <-chan core.Shard {
	out := make(chan core.Shard)
	go func() {
		defer close(out)
		s.forward(ctx, out)
		if cleanup != nil {
			cleanup()
		}
	}()
	return out
}

// forward sends pending shards until ctx ends or End is called.
func (s *Subscriber) forward(ctx context.Context, out chan<- core.Shard) {
	if s == nil {
		<-ctx.Done()
		return
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		case <-s.signal:
		}

		for shard, ok := s.next(); ok; shard, ok = s.next() {
			select {
			case <-ctx.Done():
				return
			case <-s.ended:
				return
			case out <- shard:
			}
		}
	}
}

// next takes the shard that has been pending longest.
func (s *Subscriber) next() (shard core.Shard, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == 0 {
		return shard, false
	}
	shard = s.ring[s.first]
	s.first = (s.first + 1) % len(s.ring)
	s.size--
	s.pending[shard] = false
	return shard, true
}
