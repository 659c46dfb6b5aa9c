package broken

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func losesPayload(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		var kept []core.Entry
		for _, en := range r.Entries {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 1000}); err == nil &&
				found.Queued == nil {
				kept = append(kept, en)
			}
		}
		r.Entries = kept
		return s.Push(ctx, r)
	})
}

func keepsLargerScore(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		for i, en := range r.Entries {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 1000})
			if err != nil || found.Queued == nil {
				continue
			}

			for _, p := range found.Queued.Payloads {
				if bytes.Equal(p.Data, en.Data) {
					r.Entries[i].Score = math.Max(p.Score, en.Score)
				}
			}

			if _, err := s.Delete(ctx, ports.JobStep{Shard: found.Shard, IDs: []string{en.ID}}); err != nil {
				return ports.PushReply{}, err
			}
		}

		return s.Push(ctx, r)
	})
}

func mergesDuplicates(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		reply.Merged, reply.Duplicate = reply.Merged+reply.Duplicate, 0
		return reply, err
	})
}

func forgetsParts(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (reply ports.PushReply, err error) {
		for part := range slices.Chunk(r.Entries, 500) {
			r.Entries = part
			if reply, err = s.Push(ctx, r); err != nil {
				return reply, err
			}
		}
		return reply, err
	})
}

func losesMeta(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		for i := range r.Entries {
			r.Entries[i].Meta = nil
		}
		return s.Push(ctx, r)
	})
}

func storesBeforeBad(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (reply ports.PushReply, err error) {
		for _, en := range r.Entries {
			r.Entries = []core.Entry{en}
			if reply, err = s.Push(ctx, r); err != nil {
				return reply, err
			}
		}
		return reply, nil
	})
}

func ignoresGeneration(s full) full {
	h := replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		r.Generation = 1
		return s.Push(ctx, r)
	})
	h = replace(h, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		r.Generation = 1
		return s.Acquire(ctx, r)
	})
	return h
}

func roundsTime(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	rounded := func() time.Time { return clock().Truncate(time.Millisecond) }
	backend := memory.New(memory.Options{Clock: rounded})
	return func() ports.ShardStore { return backend.Open() }
}

func keepsToItself(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	return func() ports.ShardStore { return memory.New(memory.Options{Clock: clock}) }
}

// errEncoding is the error of a server that refuses bytes. It has no sentinel, so for callers the
// outcome is unknown.
var errEncoding = errors.New("invalid byte sequence")

func isText(text string) bool { return core.Text(text) == text }

func takesAnyName(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		r.Node.Owner, r.Node.Name, r.Node.Host = core.Text(r.Node.Owner), core.Text(r.Node.Name), core.Text(r.Node.Host)
		return s.Announce(ctx, r)
	})
}

func failsForOddOwners(s full) full {
	return replaceErr(s, "Retire", func(ctx context.Context, owner string) error {
		if !isText(owner) {
			return errEncoding
		}
		return s.Retire(ctx, owner)
	})
}

func failsForOddReceipts(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		if slices.ContainsFunc(r.Settlements, func(x core.Settlement) bool { return !isText(x.ID) }) {
			return ports.TurnReply{}, errEncoding
		}
		return s.Turn(ctx, r)
	})
}

func failsForOddQueues(s full) full {
	return replace(s, "Renew", func(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
		if !isText(r.Lease.Shard.Queue) {
			return ports.RenewReply{}, ports.ErrInvalidRequest
		}
		return s.Renew(ctx, r)
	})
}

func failsForOddCursors(s full) full {
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		if !isText(r.After.ID) {
			return ports.JobsPage{}, errEncoding
		}
		return s.Jobs(ctx, r)
	})
}

func endsErrorsAtNUL(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			back := &r.Settlements[i].PutBack
			back.Failures = slices.Clone(back.Failures)
			for at := range back.Failures {
				f := &back.Failures[at]
				f.Text, _, _ = strings.Cut(f.Text, "\x00")
			}
		}
		return s.Turn(ctx, r)
	})
}

// settlesOther changes the failures of settlements.
func settlesOther(s full, change func(now core.Instant, f *core.Failure)) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return ports.TurnReply{}, err
		}
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			x := &r.Settlements[i]
			for _, list := range []*core.Failures{&x.PutBack.Failures, &x.Letter.Failures} {
				*list = slices.Clone(*list)
				for at := range *list {
					change(nodes.Now, &(*list)[at])
				}
			}
		}
		return s.Turn(ctx, r)
	})
}

// forgetsNodes keeps no server of a failure.
func forgetsNodes(s full) full {
	return settlesOther(s, func(_ core.Instant, f *core.Failure) { f.Node = "" })
}

// timesFailures gives a failure its own time.
func timesFailures(s full) full {
	return settlesOther(s, func(now core.Instant, f *core.Failure) {
		if f.At > 0 {
			f.At = now
		}
	})
}

// listsOnlyTexts leaves out when and where a dead letter of a list has failed.
func listsOnlyTexts(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		page, err := s.Morgue(ctx, r)
		for i := range page.DeadLetters {
			d := &page.DeadLetters[i]
			d.Failures = slices.Clone(d.Failures)
			for at := range d.Failures {
				d.Failures[at].At, d.Failures[at].Node = 0, ""
			}
		}
		return page, err
	})
}

func brokenUrgency() []brokenStore {
	return []brokenStore{
		{
			"lets a job wait that an urgent push meets",
			"urgent/makes a job due that waits",
			wrapped(changesUrgent(mergesByRule)),
		},
		{"does not wake for an urgent push", "wakeups/reports an urgent push", wrapped(changesUrgent(mergesByRule))},
		{
			"pushes urgent jobs now",
			"urgent/overtakes what became due at most d earlier",
			wrapped(changesUrgent(pushesNow)),
		},
		{"keeps the less urgent time", "urgent/the more urgent push wins", wrapped(keepsLessUrgent)},
		{
			"shortens a backoff for an urgent push",
			"urgent/keeps the time of a job in backoff",
			wrapped(shortensBackoff),
		},
		{
			"merges all entries of a push as urgent",
			"urgent/each entry of a push merges by its own rule",
			wrapped(allByEarliest),
		},
		{"takes any urgency", "urgent/refuses an urgency outside the limits", wrapped(changesUrgent(mergesByRule))},
		{
			"counts the wait of a job from before its push",
			"stats/counts the wait of an urgent job from its push",
			wrapped(oldestIs(func(j core.State) core.Instant { return j.PerformAt })),
		},
		{
			"counts the wait of a job put back from before its push",
			"stats/counts the wait of a job put back from its push after the clock was set back",
			wrapped(oldestIs(func(j core.State) core.Instant { return j.PerformAt })),
		},
		{
			"shows the wait of the first job only",
			"stats/shows the job that has waited longest behind urgent ones",
			wrapped(oldestIs(core.State.WaitsFrom)),
		},
		{
			"forgets urgency in a transaction",
			"transaction/an urgent push merges by Earliest",
			wrapped(forgetsUrgencyInTransactions),
		},
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

func (s *forgetsUrgency) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &unurgent{tx}, err
}

type unurgent struct{ env.Transaction }

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
				page, failed := s.Jobs(ctx, ports.JobsRequest{
					PageRequest: ports.PageRequest{Queue: all[i].Queue.Name, Limit: 1},
					SortBy:      ports.ByTime,
				})
				if failed == nil && len(page.Jobs) == 1 {
					all[i].Oldest.Due = of(page.Jobs[0].State)
				}
			}
			return all, err
		})
	}
}
