package engine

import (
	"time"

	"github.com/skeinq/skein/ports"
)

// maintainLeases renews the leases that no turn has renewed, drops expired ones, and calls off
// hanging turns, until stop is closed.
func (e *Engine) maintainLeases(stop <-chan struct{}) {
	for pause(e.checkLeases(time.Now()), stop) {
	}
}

// checkLeases checks each lease once, and returns how long to wait until the next check.
func (e *Engine) checkLeases(now time.Time) time.Duration {
	next := e.cfg.LeaseTTL / 6
	for _, s := range e.shards() {
		next = min(next, s.checkLease(now))
	}
	return max(next, time.Millisecond)
}

// checkLease does what is due for one lease, and returns how long to wait until the next check.
func (s *shard) checkLease(now time.Time) time.Duration {
	ttl := s.node.cfg.LeaseTTL

	s.mu.Lock()
	if !s.lease.held {
		s.mu.Unlock()
		return ttl / 3
	}

	token, cause := s.lease.token, s.leaseEnded(now)
	if cause != nil {
		s.mu.Unlock()
		s.dropLease(token, cause)
		return ttl / 3
	}

	if s.turns.hangs(now) {
		s.lease.callOff()
	}
	if s.lease.renewal(now) {
		s.node.start(&s.node.renewals, func() { s.renew(token) })
	}

	wait := s.lease.nextCheck(now)
	if left := ttl - s.turns.unanswered(now); left > 0 {
		wait = min(wait, left)
	}
	s.mu.Unlock()
	return wait
}

// leaseEnded returns why the lease has to be dropped, or nil. It is dropped if it was not renewed
// in time, or if a turn got no answer for a TTL although renewals did.
func (s *shard) leaseEnded(now time.Time) error {
	if !s.lease.held {
		return nil
	}
	if err := s.lease.expired(now); err != nil {
		return err
	}
	return s.turns.givenUp(now, s.leaving())
}

// renew makes one call. If that fails, the next check of the lease tries again.
func (s *shard) renew(token int64) {
	cfg := &s.node.cfg
	ctx, cancel := s.node.callContext()
	defer cancel()
	sent := time.Now()
	reply, err := s.node.store.Renew(ctx, ports.RenewRequest{
		Lease: ports.Lease{Shard: s.ID, Owner: cfg.Owner, Token: token},
		TTL:   cfg.LeaseTTL,
	})

	switch {
	case err == nil:
		s.renewing.Called(nil)
		received := time.Now()
		s.node.clock.Sync(reply.Now)

		s.mu.Lock()
		s.syncClock(reply.Now, received)
		if s.lease.holds(token) {
			s.lease.extend(sent, reply.Remaining)
			s.turns.renewed(reply.Paused, s.claims.unstarted())
		}
		s.mu.Unlock()

		s.polled(reply.Head, reply.Now, sent)
	case final(err):
		s.renewing.Called(nil)
		s.dropLease(token, err)
	default:
		s.renewing.Called(err)
	}
}
