package conformance

import (
	"context"
	"errors"
	"slices"

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

func forgetsJobs(s full) full { return forgetsDespite(s, ports.ErrNotEmpty) }

func forgetsLeased(s full) full { return forgetsDespite(s, ports.ErrLeaseHeld) }

// forgetsDespite takes no notice of one refusal.
func forgetsDespite(s full, refusal error) full {
	return replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		if err := s.Forget(ctx, queue); !errors.Is(err, refusal) {
			return err
		}
		return nil
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

// releasesSilently drops the wake-ups of shards that nothing is queued in.
func releasesSilently(s full) full {
	return replace(s, "Wakeups", func(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
		in, err := s.Wakeups(ctx, shards)
		if err != nil {
			return nil, err
		}
		out := make(chan core.Shard)
		go func() {
			defer close(out)
			for shard := range in {
				heads, err := s.Heads(ctx, []core.Shard{shard})
				if err == nil && slices.ContainsFunc(heads.Heads, func(h core.Head) bool { return h.OK }) {
					select {
					case out <- shard:
					case <-ctx.Done():
					}
				}
			}
		}()
		return out, nil
	})
}
