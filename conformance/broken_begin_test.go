package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func hidesRepeats(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) { reply.Repeat = false })
}

func ignoresResent(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { r.Resent = false })
}

// forgetsBegun keeps no evidence beyond the lease.
func forgetsBegun(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		for i := range reply.Claims {
			reply.Claims[i].Begun = false
		}
		return reply, err
	})
}

func reportsAllBegun(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) { reply.NotBegun = nil })
}

// isolatesAtOnce takes a job that was recovered once for one that must be alone.
func isolatesAtOnce(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			if b := &r.Settlements[i].PutBack; b.Recoveries == 1 {
				b.Recoveries = core.AloneRecoveries
			}
		}
	})
}

func forgetsWhatCancelsDo(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			page.Claims[i].Drop = false
		}
		return page, err
	})
}

// keepsLeaseEnds says of a lease that is over when it ended.
func keepsLeaseEnds(s full) full {
	ends := make(map[core.Receipt]core.Instant)
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			c := &page.Claims[i]
			ends[c.Receipt] = max(ends[c.Receipt], c.LeaseUntil)
			c.LeaseUntil = ends[c.Receipt]
		}
		return page, err
	})
}

// namesFewJobs keeps the first of the jobs that a node names.
func namesFewJobs(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		if jobs := r.Node.Status.Longest; len(jobs) <= ports.MaxLongest {
			r.Node.Status.Longest = jobs[:min(len(jobs), 10)]
		}
		return s.Announce(ctx, r)
	})
}

func hidesLeaseOver(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			page.Claims[i].LeaseOver = false
		}
		return page, err
	})
}
