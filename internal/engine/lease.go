package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// lease is this node's view of its lease of one shard. The zero value is no lease. shard.mu guards
// it.
type lease struct {
	held  bool
	token int64
	// until is when this node acts as if the lease had ended. renewAt is when the renewal loop
	// renews it, unless a turn renews it earlier.
	until   time.Time
	renewAt time.Time
	// ctx is the context of the turns under the lease; cancelCalls ends it.
	ctx         context.Context
	cancelCalls context.CancelCauseFunc
}

// extend moves the lease's end to remaining after the call was sent, less a fifth of the TTL as a
// margin for clocks and schedulers.
func (l *lease) extend(sent time.Time, remaining, ttl time.Duration) {
	if until := sent.Add(remaining - ttl/5); until.After(l.until) {
		l.until = until
	}
	l.renewAt = sent.Add(ttl / 3)
}

// resetContext replaces the context of the lease's calls if it has ended.
func (l *lease) resetContext(parent context.Context) {
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.cancelCalls = context.WithCancelCause(parent)
	}
}

// leaseEnd returns a channel that is closed when the lease ends. After a turn was called off, it
// is not the channel of that turn's context.
func (s *shard) leaseEnd() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.held {
		return s.lease.ctx.Done()
	}
	over := make(chan struct{})
	close(over)
	return over
}

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

	if s.turns.hangs(now) {
		l.cancelCalls(errTurnHangs)
	}

	if !now.Before(l.renewAt) {
		l.renewAt = now.Add(ttl / 15) // until the answer is here
		s.node.start(&s.node.renewals, func() { s.renew(token) })
	}

	wait := min(l.renewAt.Sub(now), l.until.Sub(now))
	if left := ttl - s.turns.unanswered(now); left > 0 {
		wait = min(wait, left)
	}
	s.mu.Unlock()
	return wait
}

// leaseEnded returns why the lease has to be dropped, or nil. It is dropped if it was not renewed
// in time, or if a turn got no answer for a TTL although renewals did.
func (s *shard) leaseEnded(now time.Time) error {
	switch {
	case !s.lease.held:
		return nil
	case !now.Before(s.lease.until):
		return fmt.Errorf("%w: the store did not answer for most of the lease's TTL of %v",
			ports.ErrLeaseLost, s.node.cfg.LeaseTTL)
	}
	return s.turns.givenUp(now, s.leaving())
}

// errTurnHangs is the cause of the end of a turn's context when the turn is called off.
var errTurnHangs = errors.New("the turn takes too long and is repeated")

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
		if s.lease.held && s.lease.token == token {
			s.lease.extend(sent, reply.Remaining, cfg.LeaseTTL)
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

// release ends a lease that has nothing left to do, so that another node need not wait until it
// expires.
func (s *shard) release() {
	s.mu.Lock()
	l, ctx := ports.Lease{Shard: s.ID, Owner: s.node.cfg.Owner, Token: s.lease.token}, s.lease.ctx
	s.mu.Unlock()
	if ctx == nil { // it is lost
		return
	}

	if err := s.tryRelease(ctx, l); err != nil {
		s.dropLease(l.Token, err)
		return
	}

	s.mu.Lock()
	held := s.lease.held && s.lease.token == l.Token // it may have expired meanwhile
	var lost []ports.EndedJob
	if held {
		lost = s.clearLease(context.Canceled)
	}
	s.mu.Unlock()

	if held {
		s.jobsEnded(lost)
		s.node.log.Debug("lease released", "shard", s.ID.String(), "token", l.Token)
		s.node.observer.LeaseChanged(ports.LeaseEvent{Shard: s.ID, Change: ports.LeaseReleased, Token: l.Token})
	}
}

// tryRelease repeats a release that fails, for up to a third of the TTL.
func (s *shard) tryRelease(ctx context.Context, l ports.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.LeaseTTL/3)
	defer cancel()

	var retry backoff
	err := s.node.store.Release(ctx, l)
	for err != nil && !final(err) && pause(retry.next(), ctx.Done()) {
		s.node.observer.StoreFailed(ports.FailureEvent{
			Call:  "release",
			Shard: s.ID,
			Kind:  ports.FailureOf(err),
			Err:   err,
		})
		err = s.node.store.Release(ctx, l)
		if errors.Is(err, ports.ErrLeaseLost) { // the reply of an earlier call was lost
			return nil
		}
	}
	return err
}

// final reports whether an error of the store ends the lease, so that repeating the call can't
// help.
func final(err error) bool {
	return errors.Is(err, ports.ErrLeaseLost) || errors.Is(err, ports.ErrStaleTurn) ||
		errors.Is(err, ports.ErrUnknownQueue) || errors.Is(err, ports.ErrInvalidRequest)
}

// dropEndedLease drops the lease if it has to be dropped now.
func (s *shard) dropEndedLease(now time.Time) {
	s.mu.Lock()
	token, cause := s.lease.token, s.leaseEnded(now)
	s.mu.Unlock()
	if cause != nil {
		s.dropLease(token, cause)
	}
}

// dropLease ends the lease on this side, since it expired or another owner has it. The running
// handlers are cancelled, and their settlements are not sent.
func (s *shard) dropLease(token int64, cause error) {
	s.mu.Lock()
	if !s.lease.held || s.lease.token != token {
		s.mu.Unlock()
		return
	}

	lost := s.clearLease(cause)
	level := slog.LevelWarn
	if now := time.Now(); now.Sub(s.lostAt) < report.Reminder { // a store that grants leases and breaks them
		level = slog.LevelDebug
	} else {
		s.lostAt = now
	}

	running := slices.Clone(s.claims.running)
	s.mu.Unlock()

	for _, b := range running {
		b.Interrupt(ports.ErrLeaseLost)
	}
	signal(s.wake)
	s.node.log.Log(context.Background(), level, "lease lost",
		"shard", s.ID.String(), "token", token, "cancelled", len(running), "error", cause)
	s.jobsEnded(lost)
	s.node.observer.LeaseChanged(ports.LeaseEvent{Shard: s.ID, Change: ports.LeaseDropped, Token: token, Err: cause})
}

// clearLease clears everything that belongs to the lease. It returns the jobs whose ends the store
// will not confirm.
func (s *shard) clearLease(cause error) []ports.EndedJob {
	lost, parts := s.turns.reset()
	s.lease.cancelCalls(cause)
	s.lease = lease{}
	s.withdraw(s.claims.loseLease(), core.Untouched)
	s.giveUpParts(parts)
	s.pool.revokeGrant(s)

	return lost
}
