package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/ports"
)

// keep renews the leases that no turn has renewed, ends those that ran out, and
// calls off turns that hang, until stop is closed.
func (e *Engine) maintainLeases(stop <-chan struct{}) {
	for pause(e.checkLeases(time.Now()), stop) {
	}
}

// keepAll looks at each lease once, and tells how long nothing can be due.
func (e *Engine) checkLeases(now time.Time) time.Duration {
	next := e.cfg.LeaseTTL / 6
	for _, s := range e.shards {
		next = min(next, s.checkLease(now))
	}
	return max(next, time.Millisecond)
}

// keep does what is due for one lease, and tells how long until something is.
func (s *shard) checkLease(now time.Time) time.Duration {
	ttl := s.node.cfg.LeaseTTL
	s.mu.Lock()
	l := &s.lease
	if !l.held {
		s.mu.Unlock()
		return ttl / 3
	}
	token, cause := l.token, s.leaseEnded(now)
	if cause != nil {
		s.mu.Unlock()
		s.dropLease(token, cause)
		return ttl / 3
	}
	if s.turns.inFlight && now.Sub(s.turns.sentAt) >= ttl/3 {
		l.cancelCalls(errTurnHangs)
	}
	if !now.Before(l.renewAt) {
		l.renewAt = now.Add(ttl / 15) // until the answer is here
		s.node.start(&s.node.renewals, func() { s.renew(token) })
	}
	wait := min(l.renewAt.Sub(now), l.until.Sub(now), ttl-s.turns.unanswered(now))
	s.mu.Unlock()
	return wait
}

// over is why the lease is to be dropped, nil if it is not: it was not renewed in
// time, or a turn got no answer for a TTL although renewals did. The latter may have
// been carried out or not, so that only a new lease can go on.
func (s *shard) leaseEnded(now time.Time) error {
	ttl := s.node.cfg.LeaseTTL
	switch {
	case !s.lease.held:
		return nil
	case !now.Before(s.lease.until):
		return fmt.Errorf("%w: the store did not answer for most of its TTL of %v", ports.ErrLeaseLost, ttl)
	case s.turns.unanswered(now) >= ttl:
		return fmt.Errorf("%w: given up, since turn %d got no answer for the TTL of %v", ports.ErrLeaseLost,
			s.turns.request.Number, ttl)
	}
	return nil
}

var errTurnHangs = errors.New("the turn takes too long and is repeated")

// renew makes one call; what it can't do now the next look does.
func (s *shard) renew(token int64) {
	cfg := &s.node.cfg
	ctx, cancel := context.WithTimeout(s.node.storeCtx, cfg.LeaseTTL/3)
	defer cancel()
	sent := time.Now()
	reply, err := s.node.store.Renew(ctx, ports.RenewRequest{
		Lease: ports.Lease{Shard: s.id, Owner: cfg.Owner, Token: token},
		TTL:   cfg.LeaseTTL,
	})
	switch {
	case err == nil:
		s.renewing.ok()
		s.node.clock.sync(reply.Now)
		s.mu.Lock()
		if s.lease.held && s.lease.token == token {
			s.lease.extend(sent, reply.Remaining, cfg.LeaseTTL)
		}
		s.mu.Unlock()
	case final(err):
		s.renewing.ok()
		s.dropLease(token, err)
	default:
		s.renewing.failed(err)
	}
}
