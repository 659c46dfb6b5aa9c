package engine

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/ports"
)

// run is the life of a shard on this node: acquire, turn, and again, until the
// node stops.
func (s *shard) run() {
	for s.awaitHandler() && s.acquire() {
		s.turnLoop()
	}
}

// awaitHandler waits until no handler of a lost lease runs any more: the shard
// is not acquired again before. False if the node stops.
func (s *shard) awaitHandler() bool {
	for {
		s.mu.Lock()
		busy := s.running != nil
		s.mu.Unlock()
		if s.node.stopping() {
			return false
		}
		if !busy {
			return true
		}
		<-s.wake
	}
}

// refusedPolls is how many poll intervals a shard that another node works is left
// alone at most, since its holder may release it long before its expiry.
const maxRefusedPolls = 4

// handOverPause is how soon after a refused acquire a wake-up makes the next: that
// of a release must not wait, those of pushes to another node's shard are many.
const handOverPause = 10 * time.Millisecond

// awaitShard waits before the next acquire, or until the shard may be free. False
// if the node stops.
func (s *shard) awaitRetry(wait time.Duration) bool {
	if !pause(min(wait, handOverPause), s.node.stop) {
		return false
	}
	if wait <= handOverPause {
		return true
	}
	timer := time.NewTimer(wait - handOverPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.released:
	case <-s.node.stop:
		return false
	}
	return true
}

// acquire tries until the shard is this node's. False if the node stops.
func (s *shard) acquire() bool {
	retry := backoff{}
	refused := backoff{wait: s.node.cfg.PollInterval, longest: maxRefusedPolls * s.node.cfg.PollInterval}
	s.attempt++
	for !s.node.stopping() {
		sent := time.Now()
		reply, err := s.tryAcquire()
		wait := retry.next()
		switch held := (*ports.HeldError)(nil); {
		case err == nil:
			s.acquiring.ok()
			s.acquired(reply, sent)
			return true
		case errors.As(err, &held):
			s.heldElsewhere(held.Owner)
			wait = min(refused.next(), max(held.Remaining, time.Millisecond))
			s.attempt++
		default:
			s.notAcquired(err)
		}
		if !s.awaitRetry(wait) {
			return false
		}
	}
	return false
}

func (s *shard) tryAcquire() (ports.AcquireReply, error) {
	cfg := &s.node.cfg
	ctx, cancel := context.WithTimeout(s.node.storeCtx, cfg.LeaseTTL/3)
	defer cancel()
	return s.node.store.Acquire(ctx, ports.AcquireRequest{
		Shard:      s.id,
		Shards:     s.queue.Shards,
		Generation: s.queue.generation.Load(),
		Owner:      cfg.Owner,
		Attempt:    s.attempt,
		TTL:        cfg.LeaseTTL,
	})
}

// notAcquired is for errors that don't say that somebody else holds the shard. A store
// may have lost the queue's record, or its queue was resharded; the latter needs
// somebody to restart this node with the new count.
func (s *shard) notAcquired(err error) {
	switch {
	case errors.Is(err, ports.ErrStaleAttempt):
		s.attempt++
	case errors.Is(err, ports.ErrUnknownQueue), errors.Is(err, ports.ErrShardCountMismatch):
		err = errors.Join(err, s.node.declare(s.queue))
		fallthrough
	default:
		s.acquiring.failed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner.fail(err)
}

// refused notes that the store answers, and that another node works the shard.
func (s *shard) heldElsewhere(holder string) {
	for _, p := range []*loopStatus{&s.acquiring, &s.turning, &s.renewing} {
		p.ok()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = ownerInfo{holder: holder}
}

// acquired starts a lease, and settles in its first turn what earlier ones left.
func (s *shard) acquired(r ports.AcquireReply, sent time.Time) {
	s.node.clock.sync(r.Now)
	s.node.roundTrips.observe(time.Since(sent))
	s.mu.Lock()
	s.owner = ownerInfo{}
	s.lease = lease{held: true, token: r.Token}
	s.lease.resetContext(s.node.storeCtx)
	s.lease.extend(sent, r.Remaining, s.node.cfg.LeaseTTL)
	s.settleOrphans(r.Claims, r.Cancellations)
	s.turns.due = s.unresponsive // no lane waits for a shard that did not answer last time
	s.advanceHead(s.node.dueNow())
	s.mu.Unlock()
	signal(s.lane.wake)
	s.node.log.Debug("skein: lease acquired", "shard", s.id.String(), "token", r.Token, "orphans", len(r.Claims))
	s.node.leaseChanged(ports.LeaseEvent{Shard: s.id, Change: ports.LeaseAcquired, Token: r.Token, Orphans: len(r.Claims)})
}

// extend moves the lease's end: remaining after the call was sent, less a fifth
// of the TTL for what clocks and schedulers do.
func (l *lease) extend(sent time.Time, remaining, ttl time.Duration) {
	if until := sent.Add(remaining - ttl/5); until.After(l.until) {
		l.until = until
	}
	l.renewAt = sent.Add(ttl / 3)
}

// allowCalls gives the lease's calls a context that has not ended.
func (l *lease) resetContext(parent context.Context) {
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.cancelCalls = context.WithCancelCause(parent)
	}
}

// release ends a lease in which nothing is left to do, so that another node need
// not wait for its expiry.
func (s *shard) release(ctx context.Context) {
	s.mu.Lock()
	l := ports.Lease{Shard: s.id, Owner: s.node.cfg.Owner, Token: s.lease.token}
	s.mu.Unlock()
	if err := s.tryRelease(ctx, l); err != nil {
		s.dropLease(l.Token, err)
		return
	}
	s.mu.Lock()
	held := s.lease.held && s.lease.token == l.Token // it may have run out meanwhile
	if held {
		s.clearLease(context.Canceled)
	}
	s.mu.Unlock()
	if held {
		s.node.leaseChanged(ports.LeaseEvent{Shard: s.id, Change: ports.LeaseReleased, Token: l.Token})
	}
}

// tryRelease repeats for a while what fails.
func (s *shard) tryRelease(ctx context.Context, l ports.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.LeaseTTL/3)
	defer cancel()
	var retry backoff
	err := s.node.store.Release(ctx, l)
	for err != nil && !final(err) && pause(retry.next(), ctx.Done()) {
		err = s.node.store.Release(ctx, l)
		if errors.Is(err, ports.ErrLeaseLost) { // the reply of an earlier call was lost
			return nil
		}
	}
	return err
}
