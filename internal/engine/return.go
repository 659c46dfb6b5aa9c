package engine

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// putBack returns what waits to start: all when paused or stopping, else what
// has waited for a poll interval.
func (s *shard) putBack(now time.Time, stopping bool) {
	for {
		since, ok := s.buffer.oldest()
		if !ok || !stopping && !s.paused && now.Sub(since) < s.node.cfg.PollInterval {
			break
		}
		s.settleUnstarted(s.buffer.takeFromFirst(s.buffer.jobs), core.Untouched)
	}
	if b := &s.starting; b.claims != nil && (stopping || s.paused || now.Sub(b.since) >= s.node.cfg.PollInterval) {
		s.returnStarting()
	}
	s.publishHead()
}

// sendAgain keeps the settlements of a turn that the store could not reach. A repeat
// does not tell which; what was settled is skipped when it comes again.
func (s *shard) keepDeferred(settled []core.Settlement, r *ports.TurnReply) {
	if r.Repeat {
		s.deferred = append(s.deferred, settled...)
		return
	}
	for _, i := range r.Deferred {
		s.deferred = append(s.deferred, settled[i])
	}
}

// waitsForHeld reports whether a stopping node is to send again what the store
// could not reach. After the shutdown timeout that is left to the next owner.
func (s *shard) awaitsDeferred(now time.Time) bool {
	return len(s.deferred) > 0 && now.Sub(s.node.stoppedAt) < s.node.cfg.ShutdownTimeout
}

func (s *shard) settleUnstarted(claims []core.Claim, kind core.OutcomeKind) {
	for i := range claims {
		s.finished = append(s.finished, s.queue.Policy.Settlement(&claims[i], &core.Outcome{Kind: kind}, 0))
	}
}

// recover settles jobs that earlier leases left, as an operator has chosen for
// those that he cancelled, else by RULES 4.
func (s *shard) settleOrphans(orphans []core.Claim, cancels []ports.Cancellation) {
	for i := range orphans {
		c := &orphans[i]
		at := slices.IndexFunc(cancels, func(k ports.Cancellation) bool { return k.ID == c.ID && k.Receipt == c.Receipt })
		switch {
		case at >= 0 && cancels[at].Drop:
			s.settleUnstarted(orphans[i:i+1], core.Dropped)
		case at >= 0:
			s.settleUnstarted(orphans[i:i+1], core.Untouched)
		default:
			settled := s.queue.Policy.Recover(c)
			if settled.Failed {
				s.pendingResults = append(s.pendingResults, pendingResult{
					id: c.ID, receipt: c.Receipt, uncounted: true, bySettlement: s.recoveryResult(c, &settled),
				})
			}
			s.finished = append(s.finished, settled)
		}
	}
}

// cancelJobs ends the jobs that an operator has cancelled: one that runs is told,
// one that waits goes back or away at once.
func (s *shard) cancelJobs(cancels []ports.Cancellation) {
	for _, k := range cancels {
		kind := core.Untouched
		if k.Drop {
			kind = core.Dropped
		}
		if c, ok := s.buffer.remove(k.ID, k.Receipt); ok {
			s.settleUnstarted([]core.Claim{c}, kind)
			continue
		}
		if s.dropStarting(core.ClaimRef{ID: k.ID, Receipt: k.Receipt}, kind) || s.running == nil {
			continue
		}
		for i := range s.running.Claims {
			if c := &s.running.Claims[i]; c.ID == k.ID && c.Receipt == k.Receipt {
				s.running.cancel(i, k.Drop)
			}
		}
	}
}
