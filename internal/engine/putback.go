package engine

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// tickAll looks twice each poll interval at shards that wait for time to pass, while there are
// any, until stop is closed. Such a shard turns if jobs have to be put back, if deferred
// settlements have to be sent, or if a running batch may have been cancelled.
func (e *Engine) tickAll(stop <-chan struct{}) {
	for await(nil, e.tickNow, stop) && pause(e.cfg.PollInterval/2, stop) {
		now := time.Now()
		for _, s := range e.shards() {
			if s.tick(now) {
				signal(e.tickNow)
			}
		}
	}
}

// tick wakes the turn loop if something is due. It reports whether to look again.
func (s *shard) tick(now time.Time) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held {
		return false
	}

	due := s.turns.tick(now, len(s.running) > 0)
	since, waiting := s.oldestUnstarted()
	if due || waiting && now.Sub(since) >= s.node.cfg.PollInterval {
		signal(s.wake)
	}

	return len(s.running) > 0 || waiting
}

// putBack puts back the jobs that wait to start: all of them if the shard is paused or given up,
// else those that have waited for a poll interval.
func (s *shard) putBack(now time.Time, leaving bool) {
	before := s.unstarted()
	if before == 0 {
		return
	}

	for {
		since, ok := s.buffer.oldest()
		if !ok || !leaving && !s.turns.news.paused && now.Sub(since) < s.node.cfg.PollInterval {
			break
		}
		s.settleUnstarted(s.buffer.takeFromFirst(s.buffer.jobs), core.Untouched)
	}

	for at := len(s.starting) - 1; at >= 0; at-- {
		if b := s.starting[at]; leaving || s.turns.news.paused || now.Sub(b.since) >= s.node.cfg.PollInterval {
			s.returnStarting(b)
		}
	}

	if s.unstarted() != before {
		s.publish()
	}
}

// oldestUnstarted returns when the first job that waits to start was claimed, or when the first
// batch that is starting was put together. ok is false if no job waits.
func (s *shard) oldestUnstarted() (since time.Time, ok bool) {
	if len(s.starting) > 0 {
		return s.starting[0].since, true
	}
	return s.buffer.oldest()
}

// settleOrphans settles jobs that earlier leases left claimed. Jobs that this process never passed
// to a handler have not begun, whatever the store reports.
func (s *shard) settleOrphans(orphans []core.Claim, cancels []ports.Cancellation) {
	for i := range orphans {
		c := &orphans[i]
		c.Begun = c.Begun && !slices.Contains(s.unstartedRefs, c.Ref())
		s.turns.outbox.settleOrphan(c, cancels, s.now())
	}
}

// orphanSettlement returns the settlement of a job that an earlier lease left claimed. If an
// operator has cancelled the job, it ends as the operator chose, else by rules 4.
func orphanSettlement(
	policy core.RetryPolicy,
	c *core.Claim,
	cancels []ports.Cancellation,
	now core.Instant,
) core.Settlement {
	at := cancelled(c, cancels)
	switch {
	case at < 0:
		return policy.Recover(c, now)
	case cancels[at].Drop:
		return policy.Settlement(c, &core.Outcome{Kind: core.Dropped}, 0)
	}
	return policy.Settlement(c, &core.Outcome{Kind: core.Untouched}, 0)
}

// cancelled returns the position of the cancellation of a claim, or -1.
func cancelled(c *core.Claim, cancels []ports.Cancellation) int {
	return slices.IndexFunc(cancels, func(k ports.Cancellation) bool { return k.ID == c.ID && k.Receipt == c.Receipt })
}

// uncancelled returns the orphans that are recovered: an operator's cancellation ends the others.
func uncancelled(orphans []core.Claim, cancels []ports.Cancellation) []core.Claim {
	if len(cancels) == 0 {
		return orphans
	}
	return slices.DeleteFunc(slices.Clone(orphans), func(c core.Claim) bool { return cancelled(&c, cancels) >= 0 })
}

// settleUnstarted settles claims that have not started, all with the same kind of outcome.
func (s *shard) settleUnstarted(claims []core.Claim, kind core.OutcomeKind) {
	s.node.countEnding(s.turns.outbox.settleUnstarted(claims, kind))
}
