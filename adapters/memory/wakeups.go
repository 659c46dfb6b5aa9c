package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
)

// subscriber is one reader of wake-ups. What it has not taken yet is kept as a
// set, so a slow reader costs no memory and makes nobody wait.
type subscriber struct {
	signal chan struct{} // holds one token while shards wait
	ended  chan struct{} // closed when a shard that is listened to was forgotten

	mu      sync.Mutex
	pending map[core.Shard]bool
	order   []core.Shard
}

// wake adds a shard to what the reader is told. It never blocks.
func (s *subscriber) wake(id core.Shard) {
	s.mu.Lock()
	if !s.pending[id] {
		s.pending[id] = true
		s.order = append(s.order, id)
	}
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// end closes the reader's channel. It may be called again.
func (s *subscriber) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
}

// next takes the shard that has waited longest.
func (s *subscriber) next() (id core.Shard, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return id, false
	}
	id = s.order[0]
	s.order = slices.Delete(s.order, 0, 1)
	delete(s.pending, id)
	return id, true
}

// Wakeups implements ports.Notifier. The channel is closed when ctx ends, which
// is also what frees a subscription, or when a queue asked for is forgotten.
func (s *Store) Wakeups(ctx context.Context, ids []core.Shard) (<-chan core.Shard, error) {
	shards := make([]*shard, len(ids))
	for i, id := range ids {
		sh, err := s.b.shard(ctx, id)
		if err != nil {
			return nil, err
		}
		shards[i] = sh
	}
	sub := &subscriber{signal: make(chan struct{}, 1), ended: make(chan struct{}), pending: make(map[core.Shard]bool)}
	for _, sh := range shards {
		sh.subscribe(sub)
		if sh.queue.gone() {
			sub.end()
		}
	}
	out := make(chan core.Shard)
	go func() {
		defer close(out)
		sub.forward(ctx, out)
		for _, sh := range shards {
			sh.unsubscribe(sub)
		}
	}()
	return out, nil
}

// forward hands on what is pending until ctx ends or the subscription does.
func (s *subscriber) forward(ctx context.Context, out chan<- core.Shard) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		case <-s.signal:
		}
		for id, ok := s.next(); ok; id, ok = s.next() {
			select {
			case <-ctx.Done():
				return
			case out <- id:
			}
		}
	}
}

func (s *shard) subscribe(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.subscribers, sub) {
		s.subscribers = append(s.subscribers, sub)
	}
}

func (s *shard) unsubscribe(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = slices.DeleteFunc(s.subscribers, func(known *subscriber) bool { return known == sub })
}

// wake tells all who listen to look at the shard.
func (s *shard) wake() {
	for _, sub := range s.subscribers {
		sub.wake(s.id)
	}
}

// wakeIfEarlier wakes if the head has become earlier than it was.
func (s *shard) wakeIfEarlier(before core.Head) {
	if len(s.subscribers) == 0 {
		return
	}
	if after := s.head(); after.OK && (!before.OK || after.Due < before.Due) {
		s.wake()
	}
}

// endSubscriptions closes the channels of all who listen.
func (s *shard) endSubscriptions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subscribers {
		sub.end()
	}
}
