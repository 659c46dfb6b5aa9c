package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
)

// served is what a node serves at a time. It is immutable.
type served struct {
	queues []*Queue
	lanes  int
	// all are the shards of the queues, in order of declaration.
	all []core.Shard
	// shards are those that may be the node's, and those of removed queues while they still work.
	shards []*shard
}

// newServed returns what a node serves that has no shards yet.
func newServed(queues []*Queue, lanes int) *served {
	now := &served{queues: queues, lanes: lanes}
	for _, q := range queues {
		now.all = append(now.all, core.Shards(q.Name, q.Shards)...)
	}
	return now
}

// byName returns the queues by name.
func (v *served) byName() map[string]*Queue {
	queues := make(map[string]*Queue, len(v.queues))
	for _, q := range v.queues {
		queues[q.Name] = q
	}
	return queues
}

// change returns a copy with other queues or lanes.
func (v *served) change(queues []*Queue, lanes int) *served {
	next := newServed(queues, lanes)
	next.shards = slices.Clone(v.shards)
	return next
}

// shards returns the shards that may be the node's.
func (e *Engine) shards() []*shard {
	if now := e.served.Load(); now != nil {
		return now.shards
	}
	return nil
}
