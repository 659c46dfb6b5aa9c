package memory

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// lease is the lease of a shard. After a release held is false. The owner, its attempt and the
// token stay known, so that no token or attempt is used twice.
type lease struct {
	held    bool
	owner   string
	attempt int64
	token   int64
	last    int64 // number of the last turn that was carried out
	ttl     time.Duration
	expires core.Instant
	orphans orphans
}

// Acquire implements [ports.Consumer].
func (s *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}
	q, err := s.b.queue(ctx, r.Shard.Queue)
	if err != nil {
		return ports.AcquireReply{}, err
	}

	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	if err := q.checkLayout(r.Shards, r.Generation); err != nil {
		return ports.AcquireReply{}, err
	}
	sh, err := q.shard(r.Shard.Index)
	if err != nil {
		return ports.AcquireReply{}, err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.b.now()
	started, err := sh.lease.acquire(&r, now)
	if err != nil {
		return ports.AcquireReply{}, err
	}

	reply := ports.AcquireReply{
		Token:         sh.lease.token,
		Now:           now,
		Remaining:     sh.lease.remaining(now),
		Cancellations: sh.claimed.cancellations(),
		Paused:        q.paused.Load(),
	}

	bound := &core.Bound{Bytes: core.AcquireBytes, Strict: true}
	if o := &sh.lease.orphans; started {
		*o = sh.claimed.orphansFor(reply.Token)
		reply.Claims = sh.handOver(bound)
		o.turned = o.next
	} else {
		reply.Claims, _ = sh.orphansAmong(o.refs[:o.next], bound)
	}

	reply.Head = sh.ownersHead(reply.Paused, now)
	return reply, nil
}

// ownersHead returns the head for the reply to an owner's acquire or turn. While orphans are left
// it is due now, so that the owner's next turn follows at once.
func (s *shard) ownersHead(paused bool, now core.Instant) core.Head {
	if paused {
		return core.Head{}
	}
	head := s.unpausedHead()
	if s.lease.orphans.left() {
		head = head.Earlier(core.Head{Due: now, OK: true})
	}
	return head
}

// Renew implements [ports.Consumer].
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
	reply := ports.RenewReply{Now: now, Remaining: sh.lease.remaining(now)}
	reply.Head, reply.Paused = sh.look()
	return reply, nil
}

// Release implements [ports.Consumer].
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

// Heads implements [ports.Consumer]. Its Now is read after the last shard.
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

// acquire starts a lease, or renews it if the attempt that started it is repeated.
func (l *lease) acquire(r *ports.AcquireRequest, now core.Instant) (started bool, err error) {
	switch {
	case l.owner == r.Owner && (r.Attempt < l.attempt || r.Attempt == l.attempt && !l.held):
		return false, storekit.StaleAttempt(r)
	case l.owner != r.Owner && l.excludes(now):
		l.expires = now.Add(l.remaining(now))
		return false, &ports.HeldError{Shard: r.Shard, Owner: l.owner, Remaining: l.remaining(now)}
	case l.owner == r.Owner && r.Attempt == l.attempt && l.excludes(now):
	default:
		*l = lease{held: true, owner: r.Owner, attempt: r.Attempt, token: max(l.token+1, int64(now))}
		started = true
	}
	l.renew(r.TTL, now)
	return started, nil
}

// check returns ErrLeaseLost unless the caller's lease is this one.
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

// remaining returns how long the lease lasts, at most its TTL: if the clock has stepped back, it
// seems to last longer.
func (l *lease) remaining(now core.Instant) time.Duration {
	return max(0, min(l.expires, now.Add(l.ttl)).Sub(now))
}

// excludes reports whether only the owner may acquire the shard.
func (l *lease) excludes(now core.Instant) bool { return l.held && l.remaining(now) > 0 }
