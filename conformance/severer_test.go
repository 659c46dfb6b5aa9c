package conformance

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// severedShards are the shards that are cut off. The zero value has no shards.
type severedShards struct {
	mu     sync.Mutex
	shards map[core.Shard]bool
}

func (c *severedShards) set(shard core.Shard, severed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shards == nil {
		c.shards = map[core.Shard]bool{}
	}
	c.shards[shard] = severed
}

func (c *severedShards) all() map[core.Shard]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.shards)
}

// Sever implements Severer for the calls that concern several shards: Heads, and in
// severedlists_test.go lists and Stats.
func (s transacted) Sever(shard core.Shard) (mend func()) {
	s.severed.set(shard, true)
	return func() { s.severed.set(shard, false) }
}

// Heads answers shard by shard.
func (s transacted) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	severed := s.severed.all()
	reached := slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool { return severed[shard] })
	if len(reached) == 0 && len(shards) > 0 {
		return ports.HeadsReply{}, errNoReply
	}
	reply, err := s.Store.Heads(ctx, reached)
	if err != nil {
		return ports.HeadsReply{}, err
	}
	heads := reply.Heads
	reply.Heads = make([]core.Head, len(shards))
	for i, shard := range shards {
		if severed[shard] {
			reply.Unreached = append(reply.Unreached, shard)
			continue
		}
		reply.Heads[i], heads = heads[0], heads[1:]
	}
	return reply, nil
}

// failsForOne is a store whose look fails altogether if one shard can't be reached.
func failsForOne(s full) full {
	return replace(s, "Heads", func(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
		reply, err := s.Heads(ctx, shards)
		if err != nil || len(reply.Unreached) > 0 {
			return ports.HeadsReply{}, errNoReply
		}
		return reply, nil
	})
}

// hidesNeighbours is a store whose unreached shards hide the head of the one behind.
func hidesNeighbours(s full) full {
	return replace(s, "Heads", func(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
		reply, err := s.Heads(ctx, shards)
		for _, shard := range reply.Unreached {
			if next := slices.Index(shards, shard) + 1; next < len(shards) {
				reply.Heads[next] = core.Head{}
			}
		}
		return reply, err
	})
}
