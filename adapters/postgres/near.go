package postgres

import (
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// near knows the shards that the last turn through this store left idle: their
// holder is in this process and waits for news. The zero value is ready.
type near struct {
	mu   sync.Mutex
	idle map[core.Shard]bool
}

// saw notes what a turn has found.
func (n *near) saw(shard core.Shard, r *ports.TurnReply) {
	n.set(shard, !r.Paused && !(r.Head.OK && r.Head.Due <= r.Now))
}

func (n *near) set(shard core.Shard, idle bool) {
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

// take reports whether a shard was idle. It is not any more.
func (n *near) take(shard core.Shard) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	idle := n.idle[shard]
	delete(n.idle, shard)
	return idle
}

// pushed has those who listen told of a shard in which a push has made or moved a
// job. A holder in this process learns of it at once, and everybody else only if it
// has not taken the job soon.
func (s *Store) pushed(shard core.Shard, due, now core.Instant) {
	if due <= now && s.near.take(shard) {
		s.ear.each(func(sub *subscriber) { sub.wake(shard) })
		s.crier.rest(shard)
	}
	s.wake(shard, due)
}
