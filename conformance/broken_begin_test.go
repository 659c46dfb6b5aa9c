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

func hidesLeaseOver(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			page.Claims[i].LeaseOver = false
		}
		return page, err
	})
}
