package broken

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// currentLease returns the lease of a shard as the store shows it.
func currentLease(ctx context.Context, s ports.ShardStore, shard core.Shard) ports.Lease {
	stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{shard.Queue}})
	if err != nil {
		return ports.Lease{Shard: shard}
	}
	now := stats[0].Shards[shard.Index]
	return ports.Lease{Shard: shard, Owner: now.Owner, Token: now.Token}
}

func givesAway(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		if errors.Is(err, ports.ErrLeaseHeld) {
			if err := s.Release(ctx, currentLease(ctx, s, r.Shard)); err != nil {
				return reply, err
			}
			return s.Acquire(ctx, r)
		}
		return reply, err
	})
}

// tokensGoBack returns the store's clock as the token, even if the last token was larger.
func tokensGoBack(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	s := withTransactions(clock)
	tokens := map[int64]int64{}
	store := replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		shown := clock().UnixMicro()
		tokens[shown], reply.Token = reply.Token, shown
		return reply, err
	})
	store = replaceErr(store, "Release", func(ctx context.Context, l ports.Lease) error {
		l.Token = tokens[l.Token]
		return s.Release(ctx, l)
	})
	return func() ports.ShardStore { return store }
}

// resetsOnRepeat treats each Acquire as a new attempt.
func resetsOnRepeat(s full) full {
	var attempts int64
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		attempts++
		r.Attempt = attempts
		return s.Acquire(ctx, r)
	})
}

func strandsOrphans(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		reply.Claims = nil
		return reply, err
	})
}

// forgetsToken compares only the owner of a lease.
func forgetsToken(s full) full {
	lease := func(ctx context.Context, l ports.Lease) ports.Lease {
		if now := currentLease(ctx, s, l.Shard); now.Owner == l.Owner {
			return now
		}
		return l
	}

	h := replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Lease = lease(ctx, r.Lease)
		return s.Turn(ctx, r)
	})
	h = replace(h, "Renew", func(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
		r.Lease = lease(ctx, r.Lease)
		return s.Renew(ctx, r)
	})
	h = replaceErr(h, "Release", func(ctx context.Context, l ports.Lease) error {
		return s.Release(ctx, lease(ctx, l))
	})

	return h
}

func refusesLate(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{r.Lease.Shard.Queue}})
		if err == nil && stats[0].Shards[r.Lease.Shard.Index].ExpiresAt < stats[0].Now {
			return ports.TurnReply{}, ports.ErrLeaseLost
		}
		return s.Turn(ctx, r)
	})
}

func renewsWhenEmpty(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if err == nil && reply.Last != r.Number {
			var renewed ports.RenewReply
			renewed, err = s.Renew(ctx, ports.RenewRequest{Lease: r.Lease, TTL: r.TTL})
			reply.Remaining = renewed.Remaining
		}
		return reply, err
	})
}

func acquiresBlindly(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		reply.Head = core.Head{}
		return reply, err
	})
}

// looksOnce returns the first head again when an acquire is repeated.
func looksOnce(s full) full {
	looked := map[int64]core.Head{}
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		if head, ok := looked[reply.Token]; ok {
			reply.Head = head
		}
		looked[reply.Token] = reply.Head
		return reply, err
	})
}

// acquiresPaused does not report a pause with an acquire.
func acquiresPaused(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		reply.Paused = false
		return reply, err
	})
}

// countsOrphans returns a head as if the jobs that an earlier lease left could be claimed.
func countsOrphans(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		if len(reply.Claims) > 0 {
			reply.Head = core.Head{Due: reply.Claims[0].PerformAt, OK: true}
		}
		return reply, err
	})
}

func renewsBlindly(s full) full {
	return replace(s, "Renew", func(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
		reply, err := s.Renew(ctx, r)
		reply.Head = core.Head{}
		return reply, err
	})
}

// renewsPaused does not report a pause with a renewal.
func renewsPaused(s full) full {
	return replace(s, "Renew", func(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
		reply, err := s.Renew(ctx, r)
		reply.Paused = false
		return reply, err
	})
}

func keepsReleased(s full) full {
	return replaceErr(s, "Release", func(context.Context, ports.Lease) error { return nil })
}

// keepsOwner shows the owner of a lease that was released, until the lease would have expired.
func keepsOwner(s full) full {
	last := map[core.Shard]ports.ShardStats{}
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for _, q := range all {
			for i := range q.Shards {
				shard := &q.Shards[i]
				if shard.Owner == "" {
					shard.Owner, shard.ExpiresAt = last[shard.Shard].Owner, last[shard.Shard].ExpiresAt
				}
				last[shard.Shard] = *shard
			}
		}
		return all, err
	})
}
