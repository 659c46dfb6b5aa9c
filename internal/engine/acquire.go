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

// refused notes that the store answers, and that another node works the shard.
func (s *shard) heldElsewhere(holder string) {
	for _, p := range []*loopStatus{&s.acquiring, &s.turning, &s.renewing} {
		p.ok()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = ownerInfo{holder: holder}
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
	return await(timer.C, s.released, s.node.stop)
}

// vacancy is what this node knows of a shard that it does not hold.
type ownerInfo struct {
	// holder is the owner who held it when this node last asked; "" if unknown.
	holder string
	// since is from when on it may have had no owner, unless zero, and err why it
	// could not be acquired; said is that the log has it.
	since  time.Time
	err    error
	logged bool
}

// fail notes that the shard can't be acquired, for another reason than a holder.
func (v *ownerInfo) fail(err error) {
	if v.since.IsZero() {
		*v = ownerInfo{since: time.Now()}
	}
	v.err = err
}
