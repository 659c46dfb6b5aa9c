package engine

import (
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// waitsForHeld reports whether a stopping node is to send again what the store
// could not reach. After the shutdown timeout that is left to the next owner.
func (s *shard) awaitsDeferred(now time.Time) bool {
	return len(s.deferred) > 0 && now.Sub(s.node.stoppedAt) < s.node.cfg.ShutdownTimeout
}

// heldSince is how long a caller's transaction has been settling a claim.
type deferral struct {
	since  time.Time
	logged bool
}

// heldTooLong notes which settlements of a turn are held, and gives a line for each that
// has been for longer than a TTL. A repeated turn does not tell which are.
func (s *shard) overdueDeferrals(settled []core.Settlement, r *ports.TurnReply, now time.Time) (lines []jobResult) {
	if r.Repeat || len(r.Deferred) == 0 && len(s.deferrals) == 0 {
		return nil
	}
	for i := range settled {
		c := core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt}
		if !slices.Contains(r.Deferred, i) {
			delete(s.deferrals, c)
			continue
		}
		since, known := s.deferrals[c]
		if !known {
			since.since = now
		}
		if lasts := now.Sub(since.since); lasts > s.node.cfg.LeaseTTL && !since.logged {
			since.logged = true
			lines = append(lines, jobResult{lines: []logLine{s.deferralLine(c.ID, lasts)}})
		}
		if s.deferrals == nil {
			s.deferrals = make(map[core.ClaimRef]deferral)
		}
		s.deferrals[c] = since
	}
	return lines
}

func (s *shardInfo) deferralLine(id string, lasts time.Duration) logLine {
	return logLine{
		level: slog.LevelWarn,
		message: "skein: a transaction that settles a job stays open, and the job waits for it; " +
			"if its client has stopped, end its session, and set idle_in_transaction_session_timeout so that the server does",
		attrs: append(s.jobAttrs(id), slog.Duration("for", lasts)),
	}
}
