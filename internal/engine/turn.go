package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// turns is the state of a lease's turns. At most one is in flight.
type turns struct {
	// last is the number of the last turn that was answered.
	last int64
	// request is the turn in flight or, if unknown is set, the turn to repeat.
	request ports.TurnRequest
	unknown bool
	// firstSent is when it was first sent. slow is how often in a row it was called off.
	firstSent time.Time
	slow      int
	// inFlight is set while a call is under way; sentAt is when it was sent.
	inFlight bool
	sentAt   time.Time
	// woken is set if a wake-up came during the call. wokenAt is when the last one came.
	woken   bool
	wokenAt time.Time
	// heard is set if a wake-up came since the last turn that was to claim. byWakeup is set if one
	// came before the turn in flight, which is to claim.
	heard, byWakeup bool
	// due requests a turn although nothing is finished.
	due bool
	// ended is when the last turn was answered.
	ended time.Time
	// sending are the settlements in flight.
	sending []core.Settlement
}

// open reports whether a turn is under way or to be repeated.
func (t *turns) open() bool { return t.inFlight || t.unknown }

// unanswered returns for how long a turn has been open, or 0 if none is.
func (t *turns) unanswered(now time.Time) time.Duration {
	if !t.open() {
		return 0
	}
	return now.Sub(t.firstSent)
}

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
			err := s.exchange()
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
	case s.needsTurn(now, leaving):
		return stepTurn
	case leaving && len(s.running) == 0 && !s.awaitsDeferred(now):
		return stepDrained
	}
	return stepIdle
}

// needsTurn reports whether there is something to send or to claim.
func (s *shard) needsTurn(now time.Time, leaving bool) bool {
	return len(s.finished) > 0 || s.turns.due || s.needsPart() || s.needsBegin() ||
		!leaving && s.mayClaim() && s.pool.hasGrant(s)
}

// mayClaim reports whether a turn may claim. Behind a slow link a turn that claims takes long and
// is repeated. Until it ends, jobs that have to begin first can't start, and the reply to a repeat
// does not show which jobs began. So while claimed jobs wait to start there, turns claim nothing.
func (s *shard) mayClaim() bool { return s.claimBytes >= s.queue.Bytes || s.unstarted() == 0 }

// exchange makes the next turn, if the lease still lasts. After an error it is unknown whether the
// turn was carried out.
func (s *shard) exchange() error {
	now := time.Now()

	s.mu.Lock()
	if !s.lease.held {
		s.mu.Unlock()
		return nil
	}

	if !s.turns.unknown {
		s.request(now, s.leaving())
	}
	s.turns.inFlight, s.turns.sentAt = true, now
	request, byWakeup, ctx := s.turns.request, s.turns.byWakeup, s.lease.ctx
	s.startOverdue()
	s.mu.Unlock()

	return s.turn(ctx, request, byWakeup)
}

// request makes the request of the next turn.
func (s *shard) request(now time.Time, leaving bool) {
	t := &s.turns
	t.due, t.firstSent, t.slow = false, now, 0

	cfg := &s.node.cfg
	t.request = ports.TurnRequest{
		Lease:       ports.Lease{Shard: s.ID, Owner: cfg.Owner, Token: s.lease.token},
		Number:      t.last + 1,
		TTL:         cfg.LeaseTTL,
		Settlements: s.nextSettlements(),
		Parts:       s.nextParts(t.last + 1),
		Begin:       s.beginRefs(t.last + 1),
		Want:        s.want(leaving),
		PerJob:      s.queue.PerJob,
		Bytes:       s.claimBytes,
		Node:        cfg.Node,
	}

	if t.byWakeup = t.heard && t.request.Want > 0; t.byWakeup {
		t.heard = false
	}
}

// want returns how many jobs the turn claims: those of the batches that the pool has granted.
func (s *shard) want(leaving bool) int {
	if leaving || !s.mayClaim() {
		return 0
	}
	return min(s.pool.takeGrant(s)*s.queue.BatchSize, core.MaxTurnJobs)
}

// nextSettlements moves finished settlements to the turn, as far as they fit.
func (s *shard) nextSettlements() []core.Settlement {
	t := &s.turns
	n := min(len(s.finished), core.MaxTurnJobs)
	spare := t.sending[:0]
	t.sending = s.finished[:n]
	s.finished = append(spare, s.finished[n:]...)
	return t.sending
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
		s.takeReply(&request, &reply, sent, received)
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

	s.adaptClaims(request, nil, took)
	if !s.lease.held || s.lease.token != request.Lease.Token {
		return
	}

	if calledOff {
		s.turns.slow++
	} else {
		s.turns.slow = 0
	}

	s.turns.unknown, s.turns.inFlight = true, false
	s.turns.request.Resent = true
	s.lease.resetContext(s.node.storeCtx)
	s.stopTrusting()
}

// leastClaimBytes is how many bytes of payload a claim may carry even on a slow link. Most jobs are
// smaller, so one slow exchange does not split them.
const leastClaimBytes = 256 << 10

// adaptClaims bounds the bytes that the next turns claim and are handed over by what the last one
// took: half if it took more than a sixth of the TTL, or twice what came in less. reply is nil if
// there was none. A reply that could bring no payload changes nothing. The caller holds shard.mu.
func (s *shard) adaptClaims(request *ports.TurnRequest, reply *ports.TurnReply, took time.Duration) {
	switch {
	case request.Want == 0 && reply != nil && len(reply.Orphans) == 0:
	case took > s.node.cfg.LeaseTTL/6:
		s.claimBytes = min(s.claimBytes, max(s.claimBytes/2, leastClaimBytes))
	case reply != nil && s.claimBytes < s.queue.Bytes:
		size := 0
		for _, claims := range [][]core.Claim{reply.Claims, reply.Orphans} {
			for i := range claims {
				for k := range claims[i].Payloads {
					size += len(claims[i].Payloads[k].Data)
				}
			}
		}

		s.claimBytes = max(s.claimBytes, min(2*size, s.queue.Bytes))
	}
}
