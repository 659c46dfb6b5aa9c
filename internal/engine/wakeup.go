package engine

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// listen passes the store's wake-ups to the shards, if the store has any, until ctx ends.
func (e *Engine) listen(ctx context.Context) {
	notifier, ok := e.store.(ports.Notifier)
	if !ok {
		return
	}

	status := e.outages.Loop("listen", core.Shard{})
	var retry backoff
	for ctx.Err() == nil {
		began := time.Now()
		subscription, cancel := context.WithCancel(ctx)
		e.resubscribe.Store(&cancel) // before the topics are read, or a change in between is missed

		ids, byID := e.heardOf()
		wakeups, err := notifier.Wakeups(subscription, ids)

		switch {
		case err == nil:
			status.Called(nil)
			e.recheckAll()
			e.listening.Store(true)
			e.deliver(wakeups, byID)
			e.listening.Store(false)
		case subscription.Err() == nil:
			status.Called(err)
		}

		ended := subscription.Err() != nil
		cancel()
		if ended { // the topics have changed, or the node stops
			retry.reset()
			continue
		}

		if time.Since(began) > longestRetry { // it has listened for a while
			retry.reset()
		}
		pause(retry.next(), ctx.Done())
	}
}

// subscribeAnew makes the node subscribe to the topics that heardOf returns now.
func (e *Engine) subscribeAnew() {
	if cancel := e.resubscribe.Load(); cancel != nil {
		(*cancel)()
	}
}

// heardOf returns the topics that the node subscribes to: its shards, also by id, its permits, and
// the list of nodes.
func (e *Engine) heardOf() (ids []core.Shard, byID map[core.Shard]*shard) {
	byID = make(map[core.Shard]*shard)
	for _, s := range e.shards() {
		ids, byID[s.ID] = append(ids, s.ID), s
	}
	for _, q := range e.served.Load().queues {
		if q.permits.Load() != nil {
			ids = append(ids, ports.PermitsOf(q.Name))
		}
	}
	return append(ids, core.Shard{}), byID
}

// deliver passes wake-ups on until their channel is closed.
func (e *Engine) deliver(wakeups <-chan core.Shard, byID map[core.Shard]*shard) {
	for id := range wakeups {
		if id == (core.Shard{}) {
			signal(e.nodesChanged)
		} else if s := byID[id]; s != nil {
			s.onWakeup()
		} else {
			e.permitsFreed(id)
		}
	}
}

// recheckAll makes the poll, and the shards that wait for another owner, look for changes while
// nobody listened.
func (e *Engine) recheckAll() {
	for _, s := range e.shards() {
		s.mu.Lock()
		s.turns.news.listens(time.Now())
		s.mu.Unlock()
		signal(s.released)
	}
	signal(e.pollNow)
	signal(e.nodesChanged)
}

// onWakeup takes a wake-up: there may be a job now, or a cancelled one. It stays valid after the
// turn in flight. If this node does not hold the lease, the shard may be free.
func (s *shard) onWakeup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held {
		signal(s.released)
	}

	busy := !s.claims.idle()
	s.turns.wakeUp(busy, time.Now())
	s.assumeDue(s.now())
	if busy {
		signal(s.wake)
	}
}
