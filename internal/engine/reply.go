package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// takeReply carries out a turn's reply, in the order of this file. claimed are its claims, as their
// rates allow. It ignores the reply if the lease was lost meanwhile.
func (s *shard) takeReply(
	request *ports.TurnRequest, r *ports.TurnReply, claimed startable, sent, received time.Time,
) {
	s.mu.Lock()
	if !s.lease.holds(request.Lease.Token) {
		s.mu.Unlock()
		return
	}

	s.endTurn(request, r, sent, received)
	answer, overdue := s.turns.outbox.answered(request.Settlements, r, s.node.cfg.LeaseTTL, received)
	s.confirmParts(request, r)
	s.withdraw(s.claims.confirmBegin(request, r), core.Untouched)
	s.claims.push(s.turns.outbox.buryRecovered(claimed.now, r.Now), received)
	s.turns.outbox.putOff(claimed.off)
	s.turns.outbox.putOff(claimed.stale)
	s.turns.putOff(len(claimed.off), len(r.Claims))
	s.hold(claimed.later)
	s.settleOrphans(r.Orphans, r.Cancellations)
	s.cancelJobs(r.Cancellations)
	if s.turns.news.turned(request, r) {
		s.publishNews()
	}
	s.endGrant(request, r, len(claimed.now))

	waits := len(r.Claims) > 0 || len(s.turns.outbox.deferred) > 0 || len(request.Begin) > 0
	s.mu.Unlock()

	s.report(&answer)
	for _, d := range overdue {
		s.logDeferral(d.id, d.lasts)
	}

	s.node.jobLog.Recovers(s.ID, "", uncancelled(r.Orphans, r.Cancellations), s.queue.Policy.MaxRecoveries)
	s.node.jobLog.Claimed(s.ID, claimed.now, s.queue.PerJob)
	s.logStale(claimed.stale)
	if waits {
		signal(s.node.tickNow)
	}
}

// endTurn ends the turn in flight, which has renewed the lease.
func (s *shard) endTurn(request *ports.TurnRequest, r *ports.TurnReply, sent, received time.Time) {
	if r.Last == request.Number {
		s.lease.extend(sent, r.Remaining)
	}
	s.lease.resetContext(s.node.storeCtx) // the turn was perhaps called off before its reply came
	s.syncClock(r.Now, received)
	if s.turns.answered(request, r, sent, received) {
		signal(s.node.pollNow)
	}
	s.overdue.Stop()
}

// logStale logs the stale payloads that are dropped.
func (s *shardInfo) logStale(settled []core.Settlement) {
	for i := range settled {
		s.node.log.Debug("stale payloads dropped, since a newer one was done",
			"queue", s.ID.Queue, "shard", s.ID.String(), "id", settled[i].ID, "payloads", settled[i].Stale)
	}
}

// logDeferral logs that a settlement has been deferred for long.
func (s *shardInfo) logDeferral(id string, lasts time.Duration) {
	s.node.log.LogAttrs(context.Background(), slog.LevelWarn,
		"a transaction that settles a job is still open, and the job waits for it; "+
			"if its client has stopped, end its session, "+
			"and set idle_in_transaction_session_timeout so that the database ends them",
		append(report.JobAttrs(s.ID, id), slog.Duration("for", lasts))...)
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

// endGrant shows the pool what its grant has brought: jobs that may start.
func (s *shard) endGrant(request *ports.TurnRequest, r *ports.TurnReply, jobs int) {
	if request.Want == 0 {
		s.publish()
		return
	}
	s.pool.grantAnswered(s, s.queue.batches(jobs), len(r.Claims) > 0 && r.Head.DueBy(r.Now))
}
