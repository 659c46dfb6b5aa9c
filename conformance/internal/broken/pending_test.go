package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// brokenPendings break the promises of Pending.
func brokenPendings() []brokenStore {
	return []brokenStore{
		{
			"takes a claimed job for settled",
			"pending/follows a job from its push to its end",
			wrapped(pendingWith(forgetsClaims)),
		},
		{
			"has the later push of two jobs",
			"pending/has the earlier push of a queued and a claimed job",
			wrapped(pendingWith(pendingSinceNow)),
		},
		{"holds jobs of the last instant", "pending/tells held jobs from others", wrapped(holdsLateJobs)},
		{
			"has pending ids in an order of its own",
			"pending/has the ids of all shards in their order",
			wrapped(sortsPending),
		},
		{"has each pending id once", "pending/has the ids of all shards in their order", wrapped(compactsPending)},
		{"has only some of many pending ids", "pending/has as many ids as may be asked for", wrapped(cutsPending)},
		{"accepts any pending ids", "pending/refuses invalid ids and their numbers", wrapped(acceptsPending)},
		{
			"hides shards that it has not asked",
			"unreached/what is pending of the ids of other shards",
			wrapped(reachesPending),
		},
	}
}

// changesPending is a store that changes the replies of Pending.
func changesPending(s full, change func(ports.PendingRequest, *ports.PendingReply)) full {
	return replace(s, "Pending", func(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
		reply, err := s.Pending(ctx, r)
		change(r, &reply)
		return reply, err
	})
}

// pendingWith returns a store that changes each entry of the replies of Pending.
func pendingWith(change func(*ports.Pending)) func(full) full {
	return func(s full) full {
		return changesPending(s, func(_ ports.PendingRequest, reply *ports.PendingReply) {
			for i := range reply.IDs {
				change(&reply.IDs[i])
			}
		})
	}
}

func forgetsClaims(p *ports.Pending) {
	p.Claimed = false
	if !p.Queued {
		p.FirstPush = 0
	}
}

func pendingSinceNow(p *ports.Pending) {
	if p.Queued && p.Claimed {
		p.FirstPush = p.Now
	}
}

func holdsLateJobs(s full) full {
	return replace(s, "Pending", func(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
		reply, err := s.Pending(ctx, r)
		for i := range reply.IDs {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.IDs[i]})
			if err != nil {
				return reply, err
			}
			reply.IDs[i].Held = found.Queued != nil && found.Queued.PerformAt == core.MaxInstant
		}
		return reply, err
	})
}

func sortsPending(s full) full {
	return replace(s, "Pending", func(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
		r.IDs = slices.Sorted(slices.Values(r.IDs))
		return s.Pending(ctx, r)
	})
}

func compactsPending(s full) full {
	return changesPending(s, func(r ports.PendingRequest, reply *ports.PendingReply) {
		seen := make(map[string]bool)
		all := reply.IDs
		reply.IDs = nil
		for i := range all {
			if !seen[r.IDs[i]] {
				reply.IDs = append(reply.IDs, all[i])
			}
			seen[r.IDs[i]] = true
		}
	})
}

func cutsPending(s full) full {
	return changesPending(s, func(_ ports.PendingRequest, reply *ports.PendingReply) {
		reply.IDs = reply.IDs[:min(len(reply.IDs), ports.MaxPending/2)]
	})
}

func acceptsPending(s full) full {
	return replace(s, "Pending", func(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
		if err := r.Validate(); err != nil {
			return ports.PendingReply{IDs: make([]ports.Pending, len(r.IDs))}, nil
		}
		return s.Pending(ctx, r)
	})
}

func reachesPending(s full) full {
	return changesPending(s, func(_ ports.PendingRequest, reply *ports.PendingReply) { reply.Unreached = nil })
}
