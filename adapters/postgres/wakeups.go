package postgres

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Wakeups implements [ports.Notifier], by LISTEN on one connection of the store for all
// subscribers. If the connection is lost, the store opens another one and sends each shard once,
// since wake-ups may have been missed. With Options.NoWakeups no shard is ever sent.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	if err := s.checkShards(ctx, shards); err != nil {
		return nil, err
	}
	sub := storekit.NewSubscriber(shards)
	if s.options.NoWakeups {
		return sub.Channel(ctx, nil), nil
	}
	if err := s.listener.join(ctx, sub, s.listen); err != nil {
		return nil, err
	}
	return sub.Channel(ctx, func() { s.listener.leave(sub) }), nil
}

// wakeAlways is an instant before every floor: a wake-up is sent whatever the head is.
const wakeAlways core.Instant = -1

// wake sends a wake-up for a shard, soon. It sends no wake-up if the shard then has no job that can
// be claimed, or has one that is due before the given instant. It never blocks.
func (s *Store) wake(shard core.Shard, due core.Instant) {
	if !s.options.NoWakeups && s.notifier.add(shard, due) {
		go s.sendWakeups()
	}
}

// awaitPush has the store look for the pushes of a caller's transaction, until the transaction has
// probably ended.
func (s *Store) awaitPush(shard core.Shard, due core.Instant) {
	if s.notifier.await(shard, due, time.Now()) {
		go s.sendWakeups()
	}
}

// wakeAfterPush sends a wake-up for a shard in which a push has made or moved a job. A holder in
// this process is notified at once, and other processes only if the holder has not taken the job
// soon.
func (s *Store) wakeAfterPush(shard core.Shard, due, now core.Instant) {
	if due <= now && s.idle.take(shard) {
		s.listener.each(func(sub *storekit.Subscriber) { sub.Wake(shard) })
		s.notifier.rest(shard, time.Now())
	}
	s.wake(shard, due)
}

// idleShards are the shards that the last turn through this store left without a due job. Their
// holder is in this process and waits for a wake-up. The zero value is ready.
type idleShards struct {
	mu   sync.Mutex
	idle map[core.Shard]bool
}

// observe takes the result of a turn.
func (n *idleShards) observe(shard core.Shard, r *ports.TurnReply) {
	n.set(shard, !r.Paused && !(r.Head.OK && r.Head.Due <= r.Now))
}

func (n *idleShards) set(shard core.Shard, idle bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !idle {
		delete(n.idle, shard)
		return
	}
	if n.idle == nil {
		n.idle = make(map[core.Shard]bool)
	}
	n.idle[shard] = true
}

// take reports whether a shard was idle, and removes it.
func (n *idleShards) take(shard core.Shard) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	idle := n.idle[shard]
	delete(n.idle, shard)
	return idle
}

// maxChannel is the longest name of a channel that Postgres takes.
const maxChannel = 63

// channel returns the name of the channel of the store's wake-ups. Schemas with very long names
// may share one, which costs them needless wake-ups.
func (s *Store) channel() string { return channelOf(s.schema) }

// channelOf returns the name of the channel of a schema, whose name is quoted.
func channelOf(schema string) string {
	name := "skein " + schema
	end := min(len(name), maxChannel)
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// channelOrNull returns the name of the channel, or nil with Options.NoWakeups.
func (s *Store) channelOrNull() *string {
	if s.options.NoWakeups {
		return nil
	}
	name := s.channel()
	return &name
}
