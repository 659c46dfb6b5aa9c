package redis

import (
	"context"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// The bits that lua/look/pending.lua returns of an id.
const (
	pendingQueued = 1 << iota
	pendingClaimed
	pendingHeld
	pendingDead
	pendingDamaged
)

// pendingOfScript is the maximum number of ids that one script reads, which takes the server about
// half a millisecond.
const pendingOfScript = 100

// pendingIDs are ids of one shard that are still to be read, by their positions in the request.
type pendingIDs struct {
	shard core.Shard
	at    []int
}

// Pending implements [ports.Inspector], with one script for each shard of the ids. A script may
// read only the first of its ids, so there are calls until none remains.
func (s *Store) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PendingReply{}, err
	}
	q, err := s.knownQueue(ctx, r.Queue)
	if err != nil {
		return ports.PendingReply{}, err
	}

	reply := ports.PendingReply{IDs: make([]ports.Pending, len(r.IDs))}
	var open []pendingIDs
	places := make(map[core.Shard]int)
	for i, id := range r.IDs {
		shard := core.Shard{Queue: r.Queue, Index: core.ShardOf(id, q.Shards)}
		reply.IDs[i].Shard = shard
		place, known := places[shard]
		if !known {
			place = len(open)
			places[shard], open = place, append(open, pendingIDs{shard: shard})
		}
		open[place].at = append(open[place].at, i)
	}

	var lost storekit.Lost
	for len(open) > 0 {
		if open, err = s.readPending(ctx, &r, open, &reply, &lost); err != nil {
			return ports.PendingReply{}, err
		}
	}
	reply.Unreached, err = lost.Shards(len(places))
	return reply, err
}

// readPending reads some ids of each shard into the reply, and returns those that remain.
func (s *Store) readPending(
	ctx context.Context,
	r *ports.PendingRequest,
	open []pendingIDs,
	reply *ports.PendingReply,
	lost *storekit.Lost,
) (remaining []pendingIDs, err error) {
	shards, calls := make([]core.Shard, len(open)), make([]exchange.Call, len(open))
	for i, p := range open {
		args := append(make([]any, 0, 1+len(p.at)), s.now())
		for _, at := range p.at[:min(len(p.at), pendingOfScript)] {
			args = append(args, r.IDs[at])
		}
		shards[i] = p.shard
		calls[i] = exchange.Call{Script: pendingScript, Keys: s.firstKeys(p.shard, jobKeys), Args: args}
	}

	err = s.eachReached(ctx, scriptApart, shards, calls, lost, func(i int, o *exchange.Outcome) error {
		n, damaged, err := parsePending(o.Value, open[i].at, reply)
		if err == nil && damaged {
			err = s.torn(ctx, s.base(shards[i]))
		}
		if left := open[i].at[n:]; err == nil && len(left) > 0 {
			remaining = append(remaining, pendingIDs{shards[i], left})
		}
		return err
	})
	return remaining, err
}

// parsePending reads the reply of the script into the entries at the given positions. It returns
// how many of them the script has read, at least one, and whether a record of one is damaged.
func parsePending(value any, at []int, reply *ports.PendingReply) (n int, damaged bool, err error) {
	rows := record.ReplyOf(value)
	_ = rows.Text()
	now := core.Instant(rows.Int())
	for ; n < len(at) && rows.More(); n++ {
		bits := rows.Int()
		reply.IDs[at[n]] = ports.Pending{
			Shard:     reply.IDs[at[n]].Shard,
			Now:       now,
			Queued:    bits&pendingQueued != 0,
			Claimed:   bits&pendingClaimed != 0,
			FirstPush: core.Instant(rows.Parsed()),
			Held:      bits&pendingHeld != 0,
			Dead:      bits&pendingDead != 0,
			Damaged:   bits&pendingDamaged != 0,
		}
		damaged = damaged || bits&pendingDamaged != 0
	}
	if n == 0 {
		return 0, false, record.ErrReply
	}
	return n, damaged, rows.Err()
}
