package engine

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// run is the life of a shard on this node. While the shard is assigned to this node, run acquires
// it, makes turns while the lease lasts, and starts again, until the node stops.
func (s *shard) run() {
	for s.awaitAssigned() {
		if s.acquire() {
			s.turnLoop()
		}
	}
}

// awaitAssigned waits until the shard is assigned to this node and no handler of a lost lease runs
// any more. The shard is not acquired again before that. It returns false if the node stops or no
// longer serves the queue.
func (s *shard) awaitAssigned() bool {
	for {
		s.mu.Lock()
		assigned, idle := s.assigned, len(s.claims.running) == 0
		s.mu.Unlock()
		switch {
		case s.node.stopping(), s.queue.removed.Load() && idle && !assigned:
			return false
		case assigned && idle:
			return true
		}
		<-s.wake
	}
}

// acquire tries until it has the lease. It returns false if the node stops or the shard is
// assigned to another node.
func (s *shard) acquire() bool {
	retry := backoff{}
	refused := backoff{wait: s.node.cfg.PollInterval, longest: maxRefusedPolls * s.node.cfg.PollInterval}
	woken := backoff{wait: firstHandOverPause, longest: lastHandOverPause}
	s.nextAttempt()
	usual := s.node.cfg.LeaseTTL / 3
	within := usual

	for !s.leavingNow() {
		sent := time.Now()
		reply, err := s.tryAcquire(within)
		if within = usual; err != nil && time.Since(sent) >= usual {
			within = s.node.longAcquire()
		}

		wait := retry.next()
		switch held := (*ports.HeldError)(nil); {
		case err == nil:
			s.acquiring.Called(nil)
			s.acquired(reply, sent)
			return true
		case errors.As(err, &held):
			s.heldElsewhere(held.Owner)
			wait = min(refused.next(), max(held.Remaining, time.Millisecond))
			s.nextAttempt()
		default:
			s.notAcquired(err)
		}

		if !s.awaitRetry(wait, woken.next()) {
			return false
		}
	}
	return false
}

// longAcquire is how long an acquire may take after one of a third of the TTL was called off. The
// first acquire of a connection may be slow, and a connection whose call was called off is closed,
// so with the same time the next one would fail too. It is not longer, since little is left of a
// lease that is two thirds of its TTL old.
func (n *node) longAcquire() time.Duration { return n.cfg.LeaseTTL * 2 / 3 }

// tryAcquire makes one call, with this shard's attempt number.
func (s *shard) tryAcquire(within time.Duration) (ports.AcquireReply, error) {
	cfg := &s.node.cfg
	ctx, cancel := context.WithTimeout(s.node.storeCtx, within)
	defer cancel()
	return s.node.store.Acquire(ctx, ports.AcquireRequest{
		Shard:      s.ID,
		Shards:     s.queue.Shards,
		Generation: s.queue.generation.Load(),
		Owner:      cfg.Owner,
		Attempt:    s.attempt,
		TTL:        cfg.LeaseTTL,
	})
}

// acquired starts the lease. The first turn settles the jobs that earlier leases left claimed; if
// there are none, it waits until the store has a due job.
func (s *shard) acquired(r ports.AcquireReply, sent time.Time) {
	received := time.Now()
	s.node.clock.Sync(r.Now)
	s.node.roundTrips.observe(received.Sub(sent))

	s.mu.Lock()
	s.syncClock(r.Now, received)
	from := s.lease.acquired(s.node.storeCtx, &r, sent)
	s.settleOrphans(r.Claims, r.Cancellations)

	if s.turns.acquired(&r, sent, time.Now()) {
		signal(s.node.pollNow)
	}
	s.publishNews()
	s.mu.Unlock()

	signal(s.node.ticksNow)
	s.node.log.Debug("lease acquired", "shard", s.ID.String(), "token", r.Token, "orphans", len(r.Claims))

	if len(r.Claims) > 0 {
		from = s.node.nameFor(from)
		s.node.jobLog.TookOver(s.ID, from, r.Token, len(r.Claims))
		s.node.jobLog.Recovers(s.ID, from, uncancelled(r.Claims, r.Cancellations), s.queue.Policy.MaxRecoveries)
	}
	s.node.observer.LeaseChanged(ports.LeaseEvent{
		Shard:   s.ID,
		Change:  ports.LeaseAcquired,
		Token:   r.Token,
		Orphans: len(r.Claims),
	})
	s.checkLease(time.Now()) // after a slow call a renewal is due at once
}

// nextAttempt counts a further attempt to acquire the shard.
func (s *shard) nextAttempt() { s.attempt = s.node.attempts.Add(1) }

// heldElsewhere notes that another owner holds the shard, and that the store answers.
func (s *shard) heldElsewhere(holder string) {
	for _, status := range []*report.Loop{s.acquiring, s.turning, s.renewing} {
		status.Called(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.heldElsewhere(holder)
}

// notAcquired handles every error except that another owner holds the shard. If the store has lost
// the queue's record, declaring the queue again helps. If the queue was resharded, this node has
// to be restarted with the new shard count.
func (s *shard) notAcquired(err error) {
	switch {
	case errors.Is(err, ports.ErrStaleAttempt):
		s.nextAttempt()
	case errors.Is(err, ports.ErrUnknownQueue), errors.Is(err, ports.ErrShardCountMismatch):
		err = errors.Join(err, s.node.declare(s.queue))
		fallthrough
	default:
		s.acquiring.Called(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.notAcquired(err, time.Now())
}

// maxRefusedPolls is the longest wait between acquires of a shard that another owner holds, in
// poll intervals. It is bounded since that owner may release the shard long before its lease
// expires.
const maxRefusedPolls = 4

// How soon after a refused acquire a wake-up causes the next one: at first, and after many. The
// wait is short because the wake-up of a release must not wait, and not zero because pushes to a
// shard of another node cause many wake-ups.
const (
	firstHandOverPause = 10 * time.Millisecond
	lastHandOverPause  = 100 * time.Millisecond
)

// awaitRetry waits before the next acquire. It returns when the time is over, when the shard may
// have been released, or when it is assigned to another node. It returns false if the node stops.
func (s *shard) awaitRetry(wait, atLeast time.Duration) bool {
	if !pause(min(wait, atLeast), s.node.stop) {
		return false
	}
	if wait <= atLeast {
		return true
	}
	timer := time.NewTimer(wait - atLeast)
	defer timer.Stop()
	return await(timer.C, s.released, s.node.stop)
}
