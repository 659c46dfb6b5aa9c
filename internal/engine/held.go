package engine

import (
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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

func (s *shard) deferralLine(id string, lasts time.Duration) logLine {
	return logLine{
		level: slog.LevelWarn,
		message: "skein: a transaction that settles a job stays open, and the job waits for it; " +
			"if its client has stopped, end its session, and set idle_in_transaction_session_timeout so that the server does",
		attrs: append(s.jobAttrs(id), slog.Duration("for", lasts)),
	}
}

// overruled gives a line if the handler, after it had settled job i in a transaction,
// gave it another outcome that can't count once that has committed. An error alone is
// none: the commit's answer may have been lost.
func (b *Batch) ignoredOutcome(i int, committed *core.Outcome) []logLine {
	o := &b.outcomes[i]
	var name string
	switch {
	case o.Kind == core.Snoozed:
		name = "Snooze"
	case o.Kind == core.Buried:
		name = "Bury"
	case o.Kind == core.Failed && o.OwnDelay:
		name = "RetryIn"
	}
	if name == "" || o.Kind == committed.Kind {
		return nil
	}
	return []logLine{{
		level: slog.LevelWarn,
		message: "skein: a handler settled a job in a transaction, which has committed, and then gave it another outcome, " +
			"which does not count; give the outcome by job.Settle before skein.SettleIn",
		attrs: append(b.shard.jobAttrs(b.Claims[i].ID), slog.String("outcome", name)),
	}}
}
