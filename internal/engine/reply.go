package engine

import (
	"time"

	"github.com/skeinq/skein/ports"
)

// apply takes a turn's reply, unless the lease was lost meanwhile.
func (s *shard) apply(request *ports.TurnRequest, r *ports.TurnReply, sent, received time.Time) {
	s.mu.Lock()
	t := &s.turns
	if !s.lease.held || s.lease.token != request.Lease.Token {
		s.mu.Unlock()
		return
	}
	if r.Last == request.Number {
		s.lease.extend(sent, r.Remaining, s.node.cfg.LeaseTTL)
	}
	ended := s.confirmResults(request.Settlements, r)
	ended = append(ended, s.overdueDeferrals(request.Settlements, r, received)...)
	s.keepDeferred(request.Settlements, r)
	s.confirmBegin(request.Begin, r)
	t.last, t.unknown, t.inFlight, t.ended = r.Last, false, false, received
	s.buffer.push(r.Claims, received)
	s.settleOrphans(r.Orphans, r.Cancellations)
	s.cancelJobs(r.Cancellations)
	s.unresponsive, s.paused = false, r.Paused
	if t.forLane || request.Want > 0 || len(request.Begin) > 0 || s.buffer.jobs > 0 || s.node.stopping() {
		s.laneWaits = false // else this turn was made before the lane asked
	}
	s.storeHead = r.Head
	s.delayHead(!r.Repeat && request.Want > 0 && len(r.Claims) == 0 && r.Head.DueBy(r.Now), r.Now)
	if t.woken && !r.Paused {
		t.woken = false
		s.assumeDue(r.Now)
	}
	s.publishHead()
	waits := len(r.Claims) > 0 || len(s.deferred) > 0 || len(request.Begin) > 0
	s.mu.Unlock()
	signal(s.lane.wake)
	s.node.report(ended)
	if waits {
		signal(s.node.tickNow)
	}
}
