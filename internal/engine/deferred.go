package engine

import (
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// awaitsDeferred reports whether a shard that is given up still has to send deferred settlements
// again. After the shutdown timeout that is left to the next owner.
func (s *shard) awaitsDeferred(now time.Time) bool {
	return len(s.deferred) > 0 && now.Sub(s.leavingSince()) < s.node.cfg.ShutdownTimeout
}

// deferral is how long a settlement of one claim has been deferred, since a caller's transaction
// settles the same job.
type deferral struct {
	since  time.Time
	logged bool
}

// splitDeferred returns the positions of those of a turn's deferred settlements that perhaps only
// did not fit its bounds, as ports.TurnReply.Deferred says, and of those that have to wait.
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

// overdueDeferrals notes since when settlements of a turn have had to wait, and returns a log line,
// once, for each that has for longer than a TTL. One that waits and is deferred behind others that
// were applied goes on waiting.
func (s *shard) overdueDeferrals(settled []core.Settlement, deferred, waiting []int, now time.Time) (results []jobResult) {
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
			results = append(results, jobResult{lines: []logLine{s.deferralLine(c.ID, lasts)}})
		}
		if s.deferrals == nil {
			s.deferrals = make(map[core.ClaimRef]deferral)
		}
		s.deferrals[c] = d
	}
	return results
}

// deferralLine is the log line for a settlement that is deferred for long.
func (s *shardInfo) deferralLine(id string, lasts time.Duration) logLine {
	return logLine{
		level: slog.LevelWarn,
		message: "a transaction that settles a job stays open, and the job waits for it; " +
			"if its client has stopped, end its session, and set idle_in_transaction_session_timeout so that the server does",
		attrs: append(s.jobAttrs(id), slog.Duration("for", lasts)),
	}
}
