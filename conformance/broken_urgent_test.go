package conformance

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenUrgency() []brokenStore {
	return []brokenStore{
		{"lets a job wait that an urgent push meets", "urgent/makes a job due that waits", wrapped(changesUrgent(mergesByRule))},
		{"does not wake for an urgent push", "wakeups/reports an urgent push", wrapped(changesUrgent(mergesByRule))},
		{"pushes urgent jobs now", "urgent/overtakes what became due at most d earlier", wrapped(changesUrgent(pushesNow))},
		{"keeps the less urgent time", "urgent/the more urgent push wins", wrapped(keepsLessUrgent)},
		{"shortens a backoff for an urgent push", "urgent/keeps the time of a job in backoff", wrapped(shortensBackoff)},
		{"merges all entries of a push as urgent", "urgent/each entry of a push merges by its own rule", wrapped(allByEarliest)},
		{"takes any urgency", "urgent/refuses an urgency outside the limits", wrapped(changesUrgent(mergesByRule))},
		{"counts the wait of a job from before its push", "stats/counts the wait of an urgent job from its push", wrapped(oldestIs(func(j core.State) core.Instant { return j.PerformAt }))},
		{"counts the wait of a job put back from before its push", "stats/counts the wait of a job put back from its push after the clock was set back", wrapped(oldestIs(func(j core.State) core.Instant { return j.PerformAt }))},
		{"shows the wait of the first job only", "stats/shows the job that has waited longest behind urgent ones", wrapped(oldestIs(core.State.WaitsFrom))},
		{"forgets urgency in a transaction", "transaction/an urgent push merges by Earliest", wrapped(forgetsUrgencyInTransactions)},
	}
}

// changesUrgent changes the urgent entries of each push.
func changesUrgent(change func(en *core.Entry)) func(s full) full {
	return func(s full) full {
		return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
			changeUrgent(&r, change)
			return s.Push(ctx, r)
		})
	}
}

func changeUrgent(r *ports.PushRequest, change func(en *core.Entry)) (urgent bool) {
	for i := range r.Entries {
		if r.Entries[i].When.Urgent() {
			urgent = true
			change(&r.Entries[i])
		}
	}
	return urgent
}

func mergesByRule(en *core.Entry) { en.When = core.In(en.When.Delay()) }

func pushesNow(en *core.Entry) { en.When = core.When{} }

// keepsLessUrgent merges an urgent push by the later of both times.
func keepsLessUrgent(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		if changeUrgent(&r, mergesByRule) {
			r.Rule = core.PushRule{Kind: core.Debounce, Limit: time.Hour}
		}
		return s.Push(ctx, r)
	})
}

func shortensBackoff(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		for _, en := range r.Entries {
			if err == nil && en.When.Urgent() {
				err = expedite(ctx, s, r.Queue, en.ID)
			}
		}
		return reply, err
	})
}

func allByEarliest(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		if changeUrgent(&r, func(*core.Entry) {}) {
			r.Rule = core.PushRule{Kind: core.Earliest}
		}
		return s.Push(ctx, r)
	})
}

func forgetsUrgencyInTransactions(s full) full { return &forgetsUrgency{s} }

type forgetsUrgency struct{ full }

func (s *forgetsUrgency) Begin(ctx context.Context) (Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &unurgent{tx}, err
}

type unurgent struct{ Transaction }

func (tx *unurgent) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	changeUrgent(&r, mergesByRule)
	return tx.Transaction.Push(ctx, r)
}

// oldestIs computes Oldest from the first queued job only.
func oldestIs(of func(core.State) core.Instant) func(s full) full {
	return func(s full) full {
		return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
			all, err := s.Stats(ctx, r)
			for i := range all {
				page, failed := s.Jobs(ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: all[i].Queue.Name, Limit: 1}, SortBy: ports.ByTime})
				if failed == nil && len(page.Jobs) == 1 {
					all[i].Oldest.Due = of(page.Jobs[0].State)
				}
			}
			return all, err
		})
	}
}
