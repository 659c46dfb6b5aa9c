package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// turns is the state of a lease's turns, of which at most one is in flight.
type turns struct {
	// last is the number of the last turn that was answered.
	last int64
	// request is the turn in flight or, if unknown is set, the one to repeat.
	request ports.TurnRequest
	unknown bool
	// forLane says that it was made after the lane had asked for jobs.
	forLane bool
	// firstSent is when it was first sent.
	firstSent time.Time
	// inFlight says that a call is under way, and sentAt since when.
	inFlight bool
	sentAt   time.Time
	// woken says that a wake-up came during the call, and wokenAt is when the last one came.
	woken   bool
	wokenAt time.Time
	// due asks for a turn although nothing is finished.
	due bool
	// ended is when the last turn was answered.
	ended time.Time
	// sending are the settlements in flight.
	sending []core.Settlement
}

// open reports whether a turn is under way or to be repeated.
func (t *turns) open() bool { return t.inFlight || t.unknown }

// unanswered returns for how long a turn has been open; 0 if none is.
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
	stepDrained             // stopping, and all is settled
)

// turnLoop turns while the lease lasts. It returns after the lease was lost, or released on
// shutdown.
func (s *shard) turnLoop() {
	var retry backoff
	for {
		next, request, ctx := s.nextStep(time.Now())
		switch next {
		case stepIdle:
			<-s.wake
		case stepLost:
			return
		case stepDrained:
			s.release(ctx)
			return
		case stepTurn:
			if s.turn(ctx, request) == nil {
				retry.reset()
				continue
			}
			pause(retry.next(), s.leaseEnd())
		}
	}
}

// nextStep decides what to do, and makes the request of a turn.
func (s *shard) nextStep(now time.Time) (step, ports.TurnRequest, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held {
		return stepLost, ports.TurnRequest{}, nil
	}
	stopping := s.node.stopping()
	if !s.turns.unknown {
		s.putBack(now, stopping)
		if !s.request(now, stopping) {
			if stopping && s.running == nil && !s.awaitsDeferred(now) {
				return stepDrained, ports.TurnRequest{}, s.lease.ctx
			}
			return stepIdle, ports.TurnRequest{}, nil
		}
	}
	s.turns.inFlight, s.turns.sentAt = true, now
	return stepTurn, s.turns.request, s.lease.ctx
}

// request makes the request of the next turn. It returns false if no turn is needed.
func (s *shard) request(now time.Time, stopping bool) bool {
	t := &s.turns
	sendStats := s.stats.due(now) || stopping && s.stats.any
	if len(s.finished) == 0 && !s.laneWaits && !t.due && !sendStats && !s.needsBegin() {
		return false
	}
	t.due, t.firstSent, t.forLane = false, now, s.laneWaits
	cfg := &s.node.cfg
	t.request = ports.TurnRequest{
		Lease:       ports.Lease{Shard: s.id, Owner: cfg.Owner, Token: s.lease.token},
		Number:      t.last + 1,
		TTL:         cfg.LeaseTTL,
		Settlements: s.nextSettlements(),
		Begin:       s.beginRefs(),
		Want:        s.want(now, stopping),
		PerJob:      s.queue.PerJob,
		Bytes:       s.queue.Bytes,
		Node:        cfg.Node,
		Lane:        s.lane.number,
	}
	if sendStats {
		t.request.Stats = s.stats.take(now)
	}
	return true
}

// nextSettlements moves what is finished to the turn, as far as it fits.
func (s *shard) nextSettlements() []core.Settlement {
	t := &s.turns
	n := min(len(s.finished), core.MaxTurnJobs)
	spare := t.sending[:0]
	t.sending = s.finished[:n]
	s.finished = append(spare, s.finished[n:]...)
	return t.sending
}

// want returns how many jobs the turn claims: for the shard that the lane is at, as many as its
// pace asks for beyond the buffer; 0 for others.
func (s *shard) want(now time.Time, stopping bool) int {
	if stopping || s.lane.current.Load() != s || s.awaitsPermit.Load() {
		return 0
	}
	var since time.Duration
	if s.running != nil {
		since = now.Sub(s.running.started)
	}
	want := s.pace.want(s.queue.BatchSize, s.node.cfg.Prefetch, s.running != nil, since)
	return max(0, min(want-s.unstarted(), core.MaxTurnJobs))
}

// turn makes the call. An error means that it is unknown whether the turn was carried out, so it
// has to be repeated.
func (s *shard) turn(ctx context.Context, request ports.TurnRequest) error {
	sent := time.Now()
	reply, err := s.node.store.Turn(ctx, request)
	received := time.Now()
	s.node.turnEnded(ports.TurnEvent{
		Shard: s.id, Settled: len(request.Settlements), Claimed: len(reply.Claims), Took: received.Sub(sent), Err: err,
	})
	switch {
	case err == nil:
		s.turning.ok()
		s.refusals.reset()
		s.node.clock.sync(reply.Now)
		s.node.roundTrips.observe(received.Sub(sent))
		s.takeReply(&request, &reply, sent, received)
		return nil
	case final(err):
		s.turning.ok() // it answers
		s.dropLease(request.Lease.Token, err)
		pause(s.refusals.next(), s.node.stop) // a store may grant leases and refuse all turns
		return nil
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		s.turning.failed(err)
	case errors.Is(cause, errTurnHangs):
		s.turning.failed(fmt.Errorf("%w: %w", cause, err))
	} // else the lease was dropped, which is logged
	s.turnFailed(request.Lease.Token)
	return err
}

// turnFailed keeps the turn for a repeat and ends the lane's wait.
func (s *shard) turnFailed(token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held || s.lease.token != token {
		return
	}
	s.turns.unknown, s.turns.inFlight = true, false
	s.turns.request.Resent = true
	s.laneWaits, s.unresponsive = false, true
	s.lease.resetContext(s.node.storeCtx)
	s.publishHead()
	signal(s.lane.wake)
}
