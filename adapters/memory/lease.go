package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// lease is who works a shard. After a release the owner, its attempt and the
// token stay known, so that they are not given again.
type lease struct {
	held    bool
	owner   string
	attempt int64
	token   int64
	last    int64 // number of the last turn carried out
	ttl     time.Duration
	expires core.Instant
}

// check compares what a caller shows with the lease.
func (l *lease) check(shown ports.Lease) error {
	if l.held && l.owner == shown.Owner && l.token == shown.Token {
		return nil
	}
	return storekit.LeaseLost(shown)
}

// renew makes the lease last for ttl from now.
func (l *lease) renew(ttl time.Duration, now core.Instant) {
	l.ttl, l.expires = ttl, now.Add(ttl)
}

// remaining is how long the lease lasts; never more than its TTL, since then the
// clock has stepped back.
func (l *lease) remaining(now core.Instant) time.Duration {
	return max(0, min(l.expires, now.Add(l.ttl)).Sub(now))
}

// lasts reports whether the lease keeps others out.
func (l *lease) lasts(now core.Instant) bool { return l.held && l.remaining(now) > 0 }

// acquire starts a lease, or renews it for a repeat of the attempt that did.
func (l *lease) acquire(r *ports.AcquireRequest, now core.Instant) error {
	switch {
	case l.owner == r.Owner && (r.Attempt < l.attempt || r.Attempt == l.attempt && !l.held):
		return storekit.StaleAttempt(r)
	case l.owner != r.Owner && l.lasts(now):
		l.expires = now.Add(l.remaining(now))
		return &ports.HeldError{Shard: r.Shard, Owner: l.owner, Remaining: l.remaining(now)}
	case l.owner == r.Owner && r.Attempt == l.attempt && l.lasts(now):
	default:
		*l = lease{held: true, owner: r.Owner, attempt: r.Attempt, token: max(l.token+1, int64(now))}
	}
	l.renew(r.TTL, now)
	return nil
}

// Acquire implements ports.Consumer. It reaches every claimed job, so turns
// have no Orphans.
func (s *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}
	q, err := s.b.queue(ctx, r.Shard.Queue)
	if err != nil {
		return ports.AcquireReply{}, err
	}
	q.use.RLock()
	defer q.use.RUnlock()
	if err := q.check(r.Shards, r.Generation); err != nil {
		return ports.AcquireReply{}, err
	}
	sh, err := q.shard(r.Shard.Index)
	if err != nil {
		return ports.AcquireReply{}, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.b.now()
	if err := sh.lease.acquire(&r, now); err != nil {
		return ports.AcquireReply{}, err
	}
	token := sh.lease.token
	orphans := sh.claimed.pick(func(m core.Receipt) bool { return m.Token != token })
	sortByID(orphans, func(c core.Claim) string { return c.ID })
	return ports.AcquireReply{
		Token:         token,
		Now:           now,
		Remaining:     sh.lease.remaining(now),
		Claims:        orphans,
		Cancellations: sh.claimed.cancels(),
	}, nil
}

// Renew implements ports.Consumer.
func (s *Store) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	if err := r.Validate(); err != nil {
		return ports.RenewReply{}, err
	}
	sh, err := s.b.shard(ctx, r.Lease.Shard)
	if err != nil {
		return ports.RenewReply{}, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.lease.check(r.Lease); err != nil {
		return ports.RenewReply{}, err
	}
	now := s.b.now()
	sh.lease.renew(r.TTL, now)
	return ports.RenewReply{Now: now, Remaining: sh.lease.remaining(now)}, nil
}

// Release implements ports.Consumer.
func (s *Store) Release(ctx context.Context, l ports.Lease) error {
	sh, err := s.b.shard(ctx, l.Shard)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.lease.check(l); err != nil {
		return err
	}
	sh.lease.held = false
	sh.wake()
	return nil
}

// Heads implements ports.Consumer. Its Now is that of the last shard looked at.
func (s *Store) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	reply := ports.HeadsReply{Heads: make([]core.Head, len(shards))}
	for i, id := range shards {
		sh, err := s.b.shard(ctx, id)
		if err != nil {
			return ports.HeadsReply{}, err
		}
		sh.mu.Lock()
		reply.Heads[i] = sh.head()
		sh.mu.Unlock()
	}
	reply.Now = s.b.now()
	return reply, nil
}

func sortByID[V any](list []V, id func(V) string) {
	slices.SortFunc(list, func(a, b V) int { return strings.Compare(id(a), id(b)) })
}
