package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// step is what a shard does next.
type step uint8

const (
	stepIdle    step = iota // nothing to do until the next wake-up
	stepTurn                // send turns.request
	stepLost                // the lease is gone
	stepDrained             // leaving, and all is settled
)

// turnLoop makes turns while the lease lasts. It returns after the lease was lost, or was released
// because the node stops or the shard is assigned to another node.
func (s *shard) turnLoop() {
	var retry backoff
	for {
		switch s.nextStep(time.Now()) {
		case stepIdle:
			<-s.wake
		case stepLost:
			return
		case stepDrained:
			s.release()
			return
		case stepTurn:
			s.node.turnSlots.take(s)
			err := s.sendTurn()
			s.node.turnSlots.giveBack(s)

			if err == nil {
				retry.reset()
				continue
			}
			pause(retry.next(), s.leaseEnd())
		}
	}
}

// nextStep decides what to do.
func (s *shard) nextStep(now time.Time) step {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.lease.held {
		return stepLost
	}
	if s.turns.unknown {
		return stepTurn
	}

	leaving := s.leaving()
	s.putBack(now, leaving)

	switch {
	case s.needsTurn(leaving):
		return stepTurn
	case leaving && len(s.claims.running) == 0 && !s.awaitsDeferred(now):
		return stepDrained
	}
	return stepIdle
}

// needsTurn reports whether there is something to send or to claim.
func (s *shard) needsTurn(leaving bool) bool {
	return s.turns.needed() || s.claims.needsBegin() ||
		!leaving && s.turns.mayClaim(s.claims.unstarted()) && s.pool.hasGrant(s)
}

// awaitsDeferred reports whether a shard that is given up still has to send deferred settlements
// again. After the shutdown timeout they are left to the next owner.
func (s *shard) awaitsDeferred(now time.Time) bool {
	return len(s.turns.outbox.deferred) > 0 && now.Sub(s.leavingSince()) < s.node.cfg.ShutdownTimeout
}

// sendTurn makes the next turn, if the lease still lasts. After an error it is unknown whether the
// turn was carried out.
func (s *shard) sendTurn() error {
	now := time.Now()

	s.mu.Lock()
	if !s.lease.held {
		s.mu.Unlock()
		return nil
	}

	if !s.turns.unknown {
		s.prepareTurn(now)
	}
	s.armOverdue(now)
	request, byWakeup, ctx := s.turns.request, s.turns.byWakeup, s.lease.ctx
	s.mu.Unlock()

	return s.turn(ctx, request, byWakeup)
}

// prepareTurn makes the request of the next turn.
func (s *shard) prepareTurn(now time.Time) {
	lease := ports.Lease{Shard: s.ID, Owner: s.node.cfg.Owner, Token: s.lease.token}
	begin := s.claims.beginRefs(s.turns.number())
	s.turns.prepare(lease, begin, s.want(), now)
}

// want returns how many jobs the turn claims: those of the batches that the pool has granted, or more
// while most of them have to wait for the rates of their keys.
func (s *shard) want() int {
	if s.leaving() || !s.turns.mayClaim(s.claims.unstarted()) {
		return 0
	}
	return min(s.pool.takeGrant(s)*s.queue.BatchSize<<s.turns.wider, core.MaxTurnJobs)
}

// turn makes the call. After an error it is unknown whether the turn was carried out, so it has to
// be repeated.
func (s *shard) turn(ctx context.Context, request ports.TurnRequest, byWakeup bool) error {
	sent := time.Now()
	reply, err := s.node.store.Turn(ctx, request)
	received := time.Now()

	s.node.observer.TurnEnd(ports.TurnEvent{
		Shard:     s.ID,
		Settled:   len(request.Settlements),
		Claimed:   len(reply.Claims),
		Recovered: len(reply.Orphans),
		Woken:     byWakeup,
		Took:      received.Sub(sent),
		Err:       err,
	})

	switch {
	case err == nil:
		s.turning.Called(nil)
		s.refusals.reset()
		s.node.clock.Sync(reply.Now)
		s.node.roundTrips.observe(received.Sub(sent))
		s.takeReply(&request, &reply, s.startable(&reply), sent, received)
		return nil
	case final(err):
		s.turning.Called(nil) // the store answers
		s.dropLease(request.Lease.Token, err)
		s.node.turnSlots.giveBack(s)          // other shards may turn meanwhile
		pause(s.refusals.next(), s.node.stop) // a store may grant leases and refuse all turns
		return nil
	}

	calledOff := false
	switch cause := context.Cause(ctx); {
	case cause == nil:
		s.turning.Called(err)
	case errors.Is(cause, errTurnHangs):
		calledOff = true
		s.turning.Called(fmt.Errorf("%w: %w", cause, err))
	} // else the lease was dropped, which is logged

	s.turnFailed(&request, received.Sub(sent), calledOff)
	return err
}

// turnFailed keeps the turn for a repeat, which gets twice the time if the turn was called off.
// Lanes no longer wait for it.
func (s *shard) turnFailed(request *ports.TurnRequest, took time.Duration, calledOff bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.turns.adaptClaims(request, nil, took)
	if !s.lease.holds(request.Lease.Token) {
		return
	}

	s.turns.failed(calledOff)
	s.lease.resetContext(s.node.storeCtx)
	s.stopTrusting()
}
