package engine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// awaitsDeferred reports whether a shard that is given up still has to send deferred settlements
// again. After the shutdown timeout they are left to the next owner.
func (s *shard) awaitsDeferred(now time.Time) bool {
	return len(s.deferred) > 0 && now.Sub(s.leavingSince()) < s.node.cfg.ShutdownTimeout
}

// deferral is for how long a settlement of one claim has been deferred because a caller's
// transaction settles the same job.
type deferral struct {
	since  time.Time
	logged bool
}

// splitDeferred splits the positions of a turn's deferred settlements into those that may only
// have exceeded its bounds, as ports.TurnReply.Deferred describes, and those that have to wait.
func splitDeferred(settled []core.Settlement, r *ports.TurnReply) (unfit, waiting []int) {
	if len(r.Deferred) == 0 {
		return nil, nil
	}

	applied := func(i int) bool { return !slices.Contains(r.Deferred, i) && !slices.Contains(r.Skipped, i) }
	first := 0
	for first < len(settled) && !applied(first) {
		first++
	}

	for _, i := range r.Deferred {
		if i > first {
			unfit = append(unfit, i)
		} else {
			waiting = append(waiting, i)
		}
	}
	return unfit, waiting
}

// settlementsAt returns the settlements at some positions.
func settlementsAt(settled []core.Settlement, positions []int) []core.Settlement {
	chosen := make([]core.Settlement, len(positions))
	for k, at := range positions {
		chosen[k] = settled[at]
	}
	return chosen
}

// overdueDeferrals notes since when settlements of a turn have had to wait. It returns a log line,
// once, for each that has waited for longer than a TTL. A settlement that is deferred behind
// others that were applied keeps waiting.
func (s *shard) overdueDeferrals(settled []core.Settlement, deferred, waiting []int, now time.Time) (lines []func()) {
	if len(waiting) == 0 && len(s.deferrals) == 0 {
		return nil
	}

	for i := range settled {
		c := core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt}
		if !slices.Contains(waiting, i) {
			if !slices.Contains(deferred, i) {
				delete(s.deferrals, c)
			}
			continue
		}

		d, known := s.deferrals[c]
		if !known {
			d.since = now
		}
		if lasts := now.Sub(d.since); lasts > s.node.cfg.LeaseTTL && !d.logged {
			d.logged = true
			lines = append(lines, func() { s.logDeferral(c.ID, lasts) })
		}

		if s.deferrals == nil {
			s.deferrals = make(map[core.ClaimRef]deferral)
		}
		s.deferrals[c] = d
	}
	return lines
}

// logDeferral logs that a settlement has been deferred for long.
func (s *shardInfo) logDeferral(id string, lasts time.Duration) {
	s.node.log.LogAttrs(context.Background(), slog.LevelWarn,
		"a transaction that settles a job is still open, and the job waits for it; "+
			"if its client has stopped, end its session, "+
			"and set idle_in_transaction_session_timeout so that the database ends them",
		append(report.JobAttrs(s.ID, id), slog.Duration("for", lasts))...)
}
