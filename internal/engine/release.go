package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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
	held := s.lease.holds(l.Token) // it may have expired meanwhile
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
	if !s.lease.holds(token) {
		s.mu.Unlock()
		return
	}

	lost := s.clearLease(cause)
	level := slog.LevelDebug
	if s.lease.lost(time.Now()) {
		level = slog.LevelWarn
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
	s.lease.end(cause)
	s.withdraw(s.claims.loseLease(), core.Untouched)
	s.giveUpParts(parts)
	s.pool.revokeGrant(s)

	return lost
}
