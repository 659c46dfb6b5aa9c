package postgres

import (
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// idleShards are the shards that the last turn through this store left without a due job:
// their holder is in this process and waits for a wake-up. The zero value is ready.
type idleShards struct {
	mu   sync.Mutex
	idle map[core.Shard]bool
}

// observe takes in what a turn has found.
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
