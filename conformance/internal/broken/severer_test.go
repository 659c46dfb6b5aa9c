package broken

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// severedShards has the shards that are cut off. The zero value has no shards.
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

// Sever implements Severer for the calls that concern several shards: Heads, lists and Stats.
func (s transacted) Sever(shard core.Shard) (mend func()) {
	s.severed.set(shard, true)
	return func() { s.severed.set(shard, false) }
}

// Heads answers shard by shard.
func (s transacted) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	severed := s.severed.all()
	reached := slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool { return severed[shard] })
	if len(reached) == 0 && len(shards) > 0 {
		return ports.HeadsReply{}, harness.ErrNoReply
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

// failsForOne is a store whose Heads fails if one shard can't be reached.
func failsForOne(s full) full {
	return replace(s, "Heads", func(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
		reply, err := s.Heads(ctx, shards)
		if err != nil || len(reply.Unreached) > 0 {
			return ports.HeadsReply{}, harness.ErrNoReply
		}
		return reply, nil
	})
}

// hidesNeighbours is a store whose Heads leaves out the head of the shard after an unreached one.
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

// reached returns the indexes of the requested shards that can be reached, and the requested shards
// that are cut off. It returns an error if all are cut off.
func (s transacted) reached(
	ctx context.Context,
	queue string,
	indexes []int,
) (reached []int, unreached []core.Shard, err error) {
	all, err := s.Store.Queues(ctx)
	if err != nil {
		return nil, nil, err
	}

	at := slices.IndexFunc(all, func(q ports.Queue) bool { return q.Name == queue })
	severed := s.severed.all()
	if at < 0 || len(severed) == 0 {
		return indexes, nil, nil // an unknown queue, which the store refuses, or no shard is cut off
	}

	reached = []int{}
	for _, shard := range core.Shards(queue, all[at].Shards) {
		switch {
		case indexes != nil && !slices.Contains(indexes, shard.Index):
		case severed[shard]:
			unreached = append(unreached, shard)
		default:
			reached = append(reached, shard.Index)
		}
	}

	if len(unreached) == 0 {
		return indexes, nil, nil
	}
	if len(reached) == 0 {
		return reached, unreached, harness.ErrNoReply
	}
	return reached, unreached, nil
}

// reachedStats returns the Stats of the reachable shards.
func (s transacted) reachedStats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if len(s.severed.all()) == 0 {
		return s.Store.Stats(ctx, r)
	}

	var all []ports.QueueStats
	var failure error
	reachedOne := false

	for _, name := range r.Queues {
		reached, unreached, err := s.reached(ctx, name, r.Shards)
		failure, reachedOne = err, reachedOne || err == nil
		stats, err := s.Store.Stats(ctx, ports.StatsRequest{Queues: []string{name}, Shards: reached})
		if err != nil {
			return nil, err
		}
		stats[0].Unreached = unreached
		all = append(all, stats...)
	}

	if !reachedOne {
		return nil, failure
	}
	return all, nil
}

// Jobs lists the reachable shards.
func (s transacted) Jobs(ctx context.Context, r ports.JobsRequest) (page ports.JobsPage, err error) {
	var unreached []core.Shard
	if r.Shards, unreached, err = s.reached(ctx, r.Queue, r.Shards); err != nil {
		return page, err
	}
	page, err = s.Store.Jobs(ctx, r)
	page.Unreached = unreached
	return page, err
}

// Claimed lists the reachable shards.
func (s transacted) Claimed(ctx context.Context, r ports.PageRequest) (page ports.ClaimedPage, err error) {
	var unreached []core.Shard
	if r.Shards, unreached, err = s.reached(ctx, r.Queue, r.Shards); err != nil {
		return page, err
	}
	page, err = s.Store.Claimed(ctx, r)
	page.Unreached = unreached
	return page, err
}

// Morgue lists the reachable shards.
func (s transacted) Morgue(ctx context.Context, r ports.MorgueRequest) (page ports.MorguePage, err error) {
	var unreached []core.Shard
	if r.Shards, unreached, err = s.reached(ctx, r.Queue, r.Shards); err != nil {
		return page, err
	}
	page, err = s.Store.Morgue(ctx, r)
	page.Unreached = unreached
	return page, err
}

// Past lists the reachable shards.
func (s transacted) Past(ctx context.Context, r ports.PageRequest) (page ports.PastPage, err error) {
	var unreached []core.Shard
	if r.Shards, unreached, err = s.reached(ctx, r.Queue, r.Shards); err != nil {
		return page, err
	}
	page, err = s.Store.Past(ctx, r)
	page.Unreached = unreached
	return page, err
}

// Groups counts the reachable shards.
func (s transacted) Groups(ctx context.Context, r ports.GroupsRequest) (reply ports.GroupsReply, err error) {
	var unreached []core.Shard
	if r.Shards, unreached, err = s.reached(ctx, r.Queue, r.Shards); err != nil {
		return reply, err
	}
	reply, err = s.Store.Groups(ctx, r)
	reply.Unreached = unreached
	return reply, err
}

// History needs the queue's first shard, like that of a store that keeps all records with that
// shard.
func (s transacted) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	_, unreached, err := s.reached(ctx, r.Queue, nil)
	if err != nil {
		return ports.HistoryReply{}, err
	}
	if len(unreached) == 0 || unreached[0].Index > 0 {
		return s.Store.History(ctx, r)
	}
	return ports.HistoryReply{Unreached: unreached[:1]}, nil
}

// failsHistoryForOne is a store whose History fails if it can't be complete.
func failsHistoryForOne(s full) full {
	return replace(s, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		reply, err := s.History(ctx, r)
		if err != nil || len(reply.Unreached) > 0 {
			return ports.HistoryReply{}, harness.ErrNoReply
		}
		return reply, nil
	})
}

// hidesUnreachedHistory does not report that a history is incomplete.
func hidesUnreachedHistory(s full) full {
	return replace(s, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		reply, err := s.History(ctx, r)
		reply.Unreached = nil
		return reply, err
	})
}

// Pending answers for the ids of the reachable shards, with their damaged records.
func (s transacted) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	reply, err := s.Store.Pending(ctx, r)
	if err != nil {
		return ports.PendingReply{}, err
	}

	severed, lost, reached := s.severed.all(), map[int]core.Shard{}, false
	for i := range reply.IDs {
		if shard := reply.IDs[i].Shard; severed[shard] {
			reply.IDs[i], lost[shard.Index] = ports.Pending{Shard: shard}, shard
			continue
		}
		reached = true
		s.noteDamage(r.IDs[i], &reply.IDs[i])
	}
	if !reached {
		return ports.PendingReply{}, harness.ErrNoReply
	}
	for _, index := range slices.Sorted(maps.Keys(lost)) {
		reply.Unreached = append(reply.Unreached, lost[index])
	}
	return reply, nil
}
