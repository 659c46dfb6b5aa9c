package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lease is the last lease of a shard. It is kept after its end, because its token and the attempts
// of its owner still matter.
type lease struct {
	owner   string
	token   int64
	attempt int64
	// released is true once the owner has released the lease.
	released bool
	expires  core.Instant
	ttl      time.Duration
	// last is the number of the last turn, and orphans the ids of the orphans that it returned.
	last    int64
	orphans []string
	// handedOver are the ids of all orphans that were returned under this lease.
	handedOver map[string]bool
}

func (l *lease) lasts(now core.Instant) bool { return !l.released && now < l.expires }

func (l *lease) renew(now core.Instant, ttl time.Duration) {
	l.expires = now.Add(ttl)
	l.ttl = l.expires.Sub(now)
}

// remaining returns how long the lease lasts: never more than the TTL, even if the clock stepped
// back.
func (l *lease) remaining(now core.Instant) time.Duration {
	return max(0, min(l.expires.Sub(now), l.ttl))
}

// check returns ErrLeaseLost unless the caller's lease is this one.
func (l *lease) check(shown ports.Lease) error {
	if l.released || l.owner != shown.Owner || l.token != shown.Token {
		return fmt.Errorf("%w: token %d of %v", ports.ErrLeaseLost, shown.Token, shown.Shard)
	}
	return nil
}

// Acquire implements ports.Consumer.
func (m *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}

	q, err := m.queue(ctx, r.Shard.Queue)
	if err == nil {
		err = q.agrees(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.AcquireReply{}, err
	}
	_, s, err := m.shard(ctx, r.Shard)
	if err != nil {
		return ports.AcquireReply{}, err
	}

	now, l := m.Now(), &s.lease
	mine := l.owner == r.Owner
	switch {
	case mine && (r.Attempt < l.attempt || r.Attempt == l.attempt && l.released):
		return ports.AcquireReply{}, fmt.Errorf("%w: %d, after %d", ports.ErrStaleAttempt, r.Attempt, l.attempt)
	case !mine && l.lasts(now):
		l.expires = now.Add(l.remaining(now))
		return ports.AcquireReply{}, &ports.HeldError{Shard: r.Shard, Owner: l.owner, Remaining: l.remaining(now)}
	case mine && r.Attempt == l.attempt && l.lasts(now):
	default:
		*l = lease{owner: r.Owner, token: max(l.token+1, int64(now)), attempt: r.Attempt, handedOver: map[string]bool{}}
		m.handOver(s, 0, acquireBound)
	}

	l.renew(now, r.TTL)
	return ports.AcquireReply{
		Token:         l.token,
		Now:           now,
		Remaining:     l.remaining(now),
		Claims:        s.inherited(),
		Cancellations: s.cancellations(),
		Head:          s.ownersHead(q.record.Paused, now),
		Paused:        q.record.Paused,
	}, nil
}

// acquireBound is the bound of what an acquire hands over.
var acquireBound = core.Bound{Bytes: core.AcquireBytes, Strict: true}

// inherited returns the orphans that were handed over under this lease, as far as the bounds allow.
func (s *shard) inherited() []core.Claim {
	claims, bound := []core.Claim(nil), acquireBound
	for _, c := range s.orphans() {
		if !s.lease.handedOver[c.ID] {
			continue
		}
		if !bound.TakeWhole(c.Payloads) {
			break
		}
		claims = append(claims, c)
	}
	return claims
}

// ownersHead returns the head as an acquire or a turn reports it. While orphans are left to be
// handed over, it is due now at the latest.
func (s *shard) ownersHead(paused bool, now core.Instant) core.Head {
	head := s.head(paused)
	left := func(c core.Claim) bool { return !s.lease.handedOver[c.ID] }
	if !paused && slices.ContainsFunc(s.orphans(), left) {
		return head.Earlier(core.Head{Due: now, OK: true})
	}
	return head
}

// orphans returns the claimed jobs of earlier leases, in order of id.
func (s *shard) orphans() []core.Claim {
	var claims []core.Claim
	for _, c := range sorted(s.claimed, byClaimID) {
		if c.Receipt.Token != s.lease.token {
			claims = append(claims, copyClaim(c.Claim))
		}
	}
	return claims
}

func (s *shard) cancellations() []ports.Cancellation {
	var cancels []ports.Cancellation
	for _, c := range sorted(s.claimed, byClaimID) {
		if c.Cancelled {
			cancels = append(cancels, ports.Cancellation{ID: c.ID, Receipt: c.Receipt, Drop: c.drop})
		}
	}
	return cancels
}

// Renew implements ports.Consumer.
func (m *Store) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.RenewReply{}, err
	}

	q, s, err := m.shard(ctx, r.Lease.Shard)
	if err != nil {
		return ports.RenewReply{}, err
	}
	if err := s.lease.check(r.Lease); err != nil {
		return ports.RenewReply{}, err
	}

	now := m.Now()
	s.lease.renew(now, r.TTL)
	return ports.RenewReply{
		Now: now, Remaining: s.lease.remaining(now), Head: s.head(q.record.Paused), Paused: q.record.Paused,
	}, nil
}

// Release implements ports.Consumer.
func (m *Store) Release(ctx context.Context, l ports.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, s, err := m.shard(ctx, l.Shard)
	if err != nil {
		return err
	}
	if err := s.lease.check(l); err != nil {
		return err
	}
	s.lease.released = true
	return nil
}

// Heads implements ports.Consumer.
func (m *Store) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := ports.HeadsReply{Now: m.Now()}
	for _, at := range shards {
		q, s, err := m.shard(ctx, at)
		if err != nil {
			return ports.HeadsReply{}, err
		}
		reply.Heads = append(reply.Heads, s.head(q.record.Paused))
	}
	return reply, nil
}
