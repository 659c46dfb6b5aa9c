package memory

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Wakeups implements [ports.Notifier]. The channel is closed when ctx ends, or when a requested
// queue is forgotten.
func (s *Store) Wakeups(ctx context.Context, ids []core.Shard) (<-chan core.Shard, error) {
	sources := make([]wakeupSource, len(ids))
	for i, id := range ids {
		source, err := s.b.wakeupSource(ctx, id)
		if err != nil {
			return nil, err
		}
		sources[i] = source
	}

	sub := storekit.NewSubscriber(ids)
	for _, source := range sources {
		source.subscribe(sub)
		if source.isForgotten() {
			sub.End()
		}
	}

	return sub.Channel(ctx, func() {
		for _, source := range sources {
			source.unsubscribe(sub)
		}
	}), nil
}

// wakeupSource wakes its subscribers.
type wakeupSource interface {
	subscribe(sub *storekit.Subscriber)
	unsubscribe(sub *storekit.Subscriber)
	// isForgotten reports whether its queue was forgotten.
	isForgotten() bool
}

// wakeupSource returns the source of wake-ups for a shard, for permits or for the list of nodes.
func (b *backend) wakeupSource(ctx context.Context, id core.Shard) (wakeupSource, error) {
	if id == (core.Shard{}) {
		return nodeList{b}, checkContext(ctx)
	}
	q, err := b.queue(ctx, id.Queue)
	if err != nil {
		return nil, err
	}
	if id == ports.PermitsOf(id.Queue) {
		return &q.permits, nil
	}
	return q.shard(id.Index)
}

func (s *shard) isForgotten() bool { return s.queue.isForgotten() }

// nodeList wakes subscribers to changes of the list of nodes.
type nodeList struct{ b *backend }

func (l nodeList) subscribe(sub *storekit.Subscriber) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.subscribers = append(l.b.subscribers, sub)
}

func (l nodeList) unsubscribe(sub *storekit.Subscriber) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.subscribers = slices.DeleteFunc(l.b.subscribers, func(known *storekit.Subscriber) bool { return known == sub })
}

func (l nodeList) isForgotten() bool { return false }

// wake notifies the subscribers. It needs the backend's lock.
func (l nodeList) wake() {
	for _, sub := range l.b.subscribers {
		sub.Wake(core.Shard{})
	}
}

func (s *shard) subscribe(sub *storekit.Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.subscribers, sub) {
		s.subscribers = append(s.subscribers, sub)
	}
}

func (s *shard) unsubscribe(sub *storekit.Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = slices.DeleteFunc(s.subscribers, func(known *storekit.Subscriber) bool { return known == sub })
}

// wake notifies the shard's subscribers.
func (s *shard) wake() {
	for _, sub := range s.subscribers {
		sub.Wake(s.id)
	}
}

// wakeIfEarlier notifies the subscribers if the head is earlier than it was before.
func (s *shard) wakeIfEarlier(before core.Head) {
	if len(s.subscribers) == 0 {
		return
	}
	if after := s.head(); after.OK && (!before.OK || after.Due < before.Due) {
		s.wake()
	}
}

// endSubscriptions closes the channels of the shard's subscribers.
func (s *shard) endSubscriptions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subscribers {
		sub.End()
	}
}
