package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// takeReply carries out a turn's reply, in the order of this file. It ignores the reply if the
// lease was lost meanwhile.
func (s *shard) takeReply(request *ports.TurnRequest, r *ports.TurnReply, sent, received time.Time) {
	s.mu.Lock()
	if !s.lease.held || s.lease.token != request.Lease.Token {
		s.mu.Unlock()
		return
	}

	s.endTurn(request, r, sent, received)
	answer, overdue := s.takeSettled(request.Settlements, r, received)
	s.confirmParts(request, r)
	s.confirmBegin(request, r)
	s.buffer.push(s.buryRecovered(r.Claims), received)
	s.settleOrphans(r.Orphans, r.Cancellations)
	s.cancelJobs(r.Cancellations)
	s.takeHead(request, r)
	s.endGrant(request, r)

	waits := len(r.Claims) > 0 || len(s.deferred) > 0 || len(request.Begin) > 0
	s.mu.Unlock()

	s.report(&answer)
	for _, log := range overdue {
		log()
	}

	s.node.jobLog.Recovers(s.ID, "", uncancelled(r.Orphans, r.Cancellations), s.queue.Policy.MaxRecoveries)
	s.node.jobLog.Claimed(s.ID, r.Claims, s.queue.PerJob)
	if waits {
		signal(s.node.tickNow)
	}
}

// endTurn ends the turn in flight, which has renewed the lease.
func (s *shard) endTurn(request *ports.TurnRequest, r *ports.TurnReply, sent, received time.Time) {
	if r.Last == request.Number {
		s.lease.extend(sent, r.Remaining, s.node.cfg.LeaseTTL)
	}
	t := &s.turns
	t.last, t.unknown, t.inFlight, t.ended = r.Last, false, false, received
	s.lease.resetContext(s.node.storeCtx) // the turn was perhaps called off before its reply came
	s.heard(sent, received)
	s.syncClock(r.Now, received)
	s.paused = r.Paused
	s.adaptClaims(request, r, received.Sub(sent))
	s.trust()
}

// takeSettled takes the answers to settlements. It returns log lines for those that are deferred
// for too long. It keeps deferred settlements to send them again. Those that may only not have
// fitted are sent at once and before others, so that they make progress. The reply of a repeated
// turn does not show which are deferred, so all are kept: those that were settled are skipped when
// they come again.
func (s *shard) takeSettled(
	settled []core.Settlement, r *ports.TurnReply, now time.Time,
) (answer execution.Answer, overdue []func()) {
	answer = s.ends.Answer(settled, r)
	s.deferred = append(s.deferred, answer.Again...)
	if r.Repeat {
		s.deferred = append(s.deferred, settled...)
		return answer, nil
	}

	unfit, waiting := splitDeferred(settled, r)
	overdue = s.overdueDeferrals(settled, r.Deferred, waiting, now)
	s.deferred = append(s.deferred, settlementsAt(settled, waiting)...)
	if len(unfit) > 0 {
		s.finished = append(settlementsAt(settled, unfit), s.finished...)
	}

	return answer, overdue
}

// report counts and logs how jobs have ended, and passes burials to the hook and ends to the
// observer.
func (s *shard) report(answer *execution.Answer) {
	for i := range answer.Results {
		r := &answer.Results[i]
		if r.Uncounted {
			s.node.tallies.count(s.ID.Queue, s.node.clock, r.Processed, r.Failed)
		}
		s.node.jobLog.Take(r.Events)
		for _, log := range r.Lines {
			log()
		}
		s.node.hooks.Add(r.Buried)
	}
	s.jobsEnded(answer.Ended)
}

// jobsEnded notifies the observer.
func (s *shardInfo) jobsEnded(jobs []ports.EndedJob) {
	if len(jobs) > 0 {
		s.node.observer.JobsEnded(ports.EndEvent{Shard: s.ID, Jobs: jobs})
	}
}

// takeHead takes the store's head. A wake-up that came during the turn is still valid.
func (s *shard) takeHead(request *ports.TurnRequest, r *ports.TurnReply) {
	s.storeHead = r.Head
	s.delayHead(!r.Repeat && request.Want > 0 && len(r.Claims)+len(r.Orphans) == 0 && r.Head.DueBy(r.Now), r.Now)
	if s.turns.woken && !r.Paused {
		s.turns.woken = false
		s.assumeDue(r.Now)
	}
}

// endGrant shows the pool what its grant has brought.
func (s *shard) endGrant(request *ports.TurnRequest, r *ports.TurnReply) {
	if request.Want == 0 {
		s.publish()
		return
	}
	batches := s.queue.batches(len(r.Claims))
	s.pool.grantAnswered(s, batches, batches > 0 && r.Head.DueBy(r.Now))
}
