package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
)

// Wakeups implements ports.Notifier, by LISTEN on one connection of the store
// for all who ask. A connection that is lost is made anew, and then each shard is
// told of, since a wake-up may have been missed. With Options.NoWakeups it tells
// of none.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	if err := s.checkShards(ctx, shards); err != nil {
		return nil, err
	}
	sub := newSubscriber(shards)
	if !s.options.NoWakeups {
		if err := s.ear.join(ctx, sub, s.listen); err != nil {
			return nil, err
		}
	}
	out := make(chan core.Shard)
	go func() {
		defer close(out)
		defer s.ear.leave(sub)
		sub.forward(ctx, out)
	}()
	return out, nil
}

// subscriber is one reader of wake-ups. Which shards it has yet to take is kept
// as a set, so that a slow reader costs no memory and makes nobody wait.
type subscriber struct {
	shards []core.Shard  // that it asked for
	signal chan struct{} // holds a token while some wait

	mu      sync.Mutex
	waiting map[core.Shard]bool // for each of them
	order   []core.Shard
}

func newSubscriber(shards []core.Shard) *subscriber {
	s := &subscriber{
		shards:  slices.Clone(shards),
		signal:  make(chan struct{}, 1),
		waiting: make(map[core.Shard]bool, len(shards)),
	}
	for _, shard := range s.shards {
		s.waiting[shard] = false
	}
	return s
}

// wake has the reader told of those of the shards that it asked for. It never
// blocks.
func (s *subscriber) wake(shards ...core.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, shard := range shards {
		if waits, asked := s.waiting[shard]; asked && !waits {
			s.waiting[shard] = true
			s.order = append(s.order, shard)
		}
	}
	if len(s.order) == 0 {
		return
	}
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// take is what the reader is to be told, in the order it came.
func (s *subscriber) take() []core.Shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.order
	s.order = nil
	for _, shard := range taken {
		s.waiting[shard] = false
	}
	return taken
}

// forward hands on what waits until ctx ends.
func (s *subscriber) forward(ctx context.Context, out chan<- core.Shard) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.signal:
		}
		for _, shard := range s.take() {
			select {
			case <-ctx.Done():
				return
			case out <- shard:
			}
		}
	}
}
