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
func (e *Engine) keep(stop <-chan struct{}) {
	for pause(e.keepAll(time.Now()), stop) {
	}
}

// keepAll looks at each lease once, and tells how long nothing can be due.
func (e *Engine) keepAll(now time.Time) time.Duration {
	next := e.cfg.TTL / 3
	for _, s := range e.shards {
		next = min(next, s.keep(now))
	}
	return max(next, time.Millisecond)
}

// keep does what is due for one lease, and tells how long until something is.
func (s *shard) keep(now time.Time) time.Duration {
	ttl := s.node.cfg.TTL
	s.mu.Lock()
	l := &s.lease
	if !l.held {
		s.mu.Unlock()
		return ttl / 3
	}
	token := l.token
	if !now.Before(l.until) {
		s.mu.Unlock()
		s.drop(token, fmt.Errorf("%w: the store did not answer for most of its TTL of %v", ports.ErrLeaseLost, ttl))
		return ttl / 3
	}
	if s.turns.inFlight && now.Sub(s.turns.since) >= ttl/3 {
		l.callOff(errTurnHangs)
	}
	if !now.Before(l.renewAt) {
		l.renewAt = now.Add(ttl / 15) // until the answer is here
		s.node.renewals.Go(func() { s.renew(token) })
	}
	wait := min(l.renewAt.Sub(now), l.until.Sub(now))
	s.mu.Unlock()
	return wait
}

var errTurnHangs = errors.New("the turn takes too long and is repeated")

// renew makes one call; what it can't do now the next look does.
func (s *shard) renew(token int64) {
	cfg := &s.node.cfg
	ctx, cancel := context.WithTimeout(s.node.storeCtx, cfg.TTL/3)
	defer cancel()
	sent := time.Now()
	reply, err := s.node.store.Renew(ctx, ports.RenewRequest{
		Lease: ports.Lease{Shard: s.id, Owner: cfg.Owner, Token: token},
		TTL:   cfg.TTL,
	})
	switch {
	case err == nil:
		s.node.clock.sync(reply.Now)
		s.mu.Lock()
		if s.lease.held && s.lease.token == token {
			s.lease.extend(sent, reply.Remaining, cfg.TTL)
		}
		s.mu.Unlock()
	case final(err):
		s.drop(token, err)
	default:
		s.node.log.Debug("skein: renewal failed", "shard", s.id.String(), "error", err)
	}
}
