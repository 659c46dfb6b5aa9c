package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func keepsReleased(s full) full {
	return replaceErr(s, "Release", func(context.Context, ports.Lease) error { return nil })
}

func dropsSecond(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		var once []core.Settlement
		seen := map[string]bool{}
		for _, x := range r.Settlements {
			if !seen[x.ID] {
				once = append(once, x)
			}
			seen[x.ID] = true
		}
		r.Settlements = once
		return s.Turn(ctx, r)
	})
}

func losesMetaOfLarge(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		for _, c := range reply.Claims {
			for i := range c.Payloads {
				if len(c.Payloads) >= largeJob {
					c.Payloads[i].Meta = nil
				}
			}
		}
		return reply, err
	})
}

// firstFirst is a store that expedites in another order than told.
type firstFirst struct{ full }

func expeditesFirst(s full) full { return firstFirst{s} }

func (f firstFirst) Expedite(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	if step.IDs != nil {
		return f.full.Expedite(ctx, step)
	}
	page, err := f.Jobs(ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: step.Shard.Queue, Limit: step.Size()}})
	if err != nil {
		return ports.StepReply{}, err
	}
	var ids []string
	for _, j := range page.Jobs {
		ids = append(ids, j.ID)
	}
	reply, err := f.full.Expedite(ctx, ports.JobStep{Shard: step.Shard, IDs: ids})
	reply.More = true
	return reply, err
}
