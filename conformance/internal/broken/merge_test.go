package broken

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenMerges() []brokenStore {
	return []brokenStore{
		{"keeps the smaller score by any merge rule", "merge rule/decides what pushes leave", wrapped(unitesAlways)},
		{"takes any merge rule for a queue that exists", "merge rule/refuses another rule", wrapped(takesAnyMergeRule)},
		{
			"bounds what is pushed and forgets the bound at a put-back",
			"merge rule/decides what a put-back leaves",
			wrapped(boundsOnlyPushes),
		},
		{
			"bounds what is pushed and forgets the bound at a recovery",
			"merge rule/decides what a recovery leaves",
			wrapped(boundsOnlyPushes),
		},
		{
			"bounds what is pushed and forgets the bound at a revive",
			"merge rule/decides what a revive leaves",
			wrapped(boundsOnlyPushes),
		},
		{
			"bounds what is pushed and forgets the bound in the morgue",
			"merge rule/decides what a burial leaves",
			wrapped(boundsOnlyPushes),
		},
		{
			"bounds what is pushed and forgets the bound at an import",
			"merge rule/bounds what is imported",
			wrapped(boundsOnlyPushes),
		},
		{
			"bounds what is pushed and forgets the bound in the inbox",
			"transaction/merges by the queue's rule",
			wrapped(boundsOnlyPushes),
		},
		{"breaks ties by letters", "merge rule/decides what pushes leave", wrapped(breaksTiesByLetters)},
		{
			"drops a job's state with its payloads",
			"merge rule/keeps the state of a job whose payloads are superseded",
			wrapped(dropsSupersededState),
		},
		{
			"counts superseded payloads as failed",
			"merge rule/counts superseded payloads as nothing else",
			wrapped(countsSupersededAsFailed),
		},
		{
			"forgets a job that is pushed twice behind its claim",
			"merge rule/claims a job that was pushed twice behind its claim",
			wrapped(forgetsBehindClaims),
		},
		{
			"counts superseded entries as duplicates",
			"merge rule/reports what entries met",
			wrapped(supersedesDuplicates),
		},
		{
			"merges by the former rule",
			"merge rule/decides what pushes leave after a change",
			wrapped(ignoresMergeChanges),
		},
		{"ignores a change of the rule", "merge rule/can be changed", wrapped(ignoresMergeChanges)},
		{"resumes a queue whose rule is changed", "merge rule/can be changed", wrapped(resumesByMergeChanges)},
		{
			"takes a rule with another Same",
			"merge rule/can't be changed to one with another Same",
			wrapped(takesAnyChange),
		},
		{
			"bounds queued jobs when the rule is changed",
			"merge rule/keeps what is queued and dead at a change",
			wrapped(boundsAtChanges),
		},
		{
			"forgets the new bound at a put-back",
			"merge rule/bounds a put-back after a change",
			wrapped(boundsOnlyPushes),
		},
		{
			"does not count superseded payloads",
			"merge rule/decides what one push leaves",
			wrapped(countsNoneSuperseded),
		},
	}
}

// forgetsBehindClaims removes the queued job of a claimed id that another push merges into.
func forgetsBehindClaims(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		for _, en := range r.Entries {
			found, none := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 2})
			if err != nil || none != nil || found.Claim == nil || found.Queued == nil ||
				len(found.Queued.Payloads) < 2 {
				continue
			}

			if _, err := s.Delete(ctx, ports.JobStep{Shard: found.Shard, IDs: []string{en.ID}}); err != nil {
				return reply, err
			}
		}
		return reply, err
	})
}

func unitesAlways(s full) full {
	return replace(s, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		r.Merge = core.MergeRule{}
		return s.Declare(ctx, r)
	})
}

func takesAnyMergeRule(s full) full {
	return replace(s, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		queues, err := s.Queues(ctx)
		for _, q := range queues {
			if q.Name == r.Queue {
				r.Merge = q.Merge
			}
		}
		if err != nil {
			return ports.DeclareReply{}, err
		}
		return s.Declare(ctx, r)
	})
}

func ignoresMergeChanges(s full) full {
	return replaceErr(s, "SetMerge", func(context.Context, ports.SetMergeRequest) error { return nil })
}

func resumesByMergeChanges(s full) full {
	return replaceErr(s, "SetMerge", func(ctx context.Context, r ports.SetMergeRequest) error {
		return errors.Join(s.SetMerge(ctx, r), s.Resume(ctx, r.Queue))
	})
}

// takesAnyChange takes the Same of the queue for that of the request.
func takesAnyChange(s full) full {
	return replaceErr(s, "SetMerge", func(ctx context.Context, r ports.SetMergeRequest) error {
		queues, err := s.Queues(ctx)
		for _, q := range queues {
			if q.Name == r.Queue {
				r.Merge = core.MergeRule{Same: q.Merge.Same}
			}
		}
		return errors.Join(err, s.SetMerge(ctx, r))
	})
}

// boundsAtChanges removes what the new rule does not keep of the queued jobs at once.
func boundsAtChanges(s full) full {
	return replaceErr(s, "SetMerge", func(ctx context.Context, r ports.SetMergeRequest) error {
		if err := s.SetMerge(ctx, r); err != nil || r.Merge.Keep == 0 {
			return err
		}

		page, err := s.Jobs(ctx, ports.JobsRequest{
			PageRequest: ports.PageRequest{Queue: r.Queue, Limit: 10},
			SortBy:      ports.ByTime,
		})

		for _, j := range page.Jobs {
			if _, err := s.Delete(ctx, ports.JobStep{
				Shard: core.Shard{Queue: r.Queue},
				IDs:   []string{j.ID},
			}); err != nil {
				return err
			}
		}
		return err
	})
}

// boundsOnlyPushes has no bound, but removes the payloads beyond it after each push.
func boundsOnlyPushes(s full) full {
	keep := map[string]int{}
	h := replace(s, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		keep[r.Queue] = r.Merge.Keep
		r.Merge.Keep = 0
		return s.Declare(ctx, r)
	})

	h = replaceErr(h, "SetMerge", func(ctx context.Context, r ports.SetMergeRequest) error {
		keep[r.Queue] = r.Merge.Keep
		r.Merge.Keep = 0
		return s.SetMerge(ctx, r)
	})

	return replace(h, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		for _, en := range r.Entries {
			found, none := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 1000})
			if err != nil || none != nil || keep[r.Queue] == 0 || found.Queued == nil ||
				len(found.Queued.Payloads) <= keep[r.Queue] {
				continue
			}

			if _, err := s.Delete(ctx, ports.JobStep{Shard: found.Shard, IDs: []string{en.ID}}); err != nil {
				return reply, err
			}

			again := r
			again.Entries = env.EntriesOf(en.ID, found.Queued.Payloads[len(found.Queued.Payloads)-keep[r.Queue]:])
			if _, err := s.Push(ctx, again); err != nil {
				return reply, err
			}
		}
		return reply, err
	})
}

// breaksTiesByLetters compares payloads with equal scores without regard to case.
func breaksTiesByLetters(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		var kept []core.Entry
		for _, en := range r.Entries {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 1000})
			if err != nil || found.Queued == nil {
				kept = append(kept, en)
				continue
			}

			there := found.Queued.Payloads[0]
			byBytes := bytes.Compare(there.Data, en.Data)
			byLetters := strings.Compare(strings.ToLower(string(there.Data)), strings.ToLower(string(en.Data)))
			if there.Score != en.Score || byLetters < 0 || byBytes >= 0 {
				kept = append(kept, en)
			}
		}

		r.Entries = kept
		return s.Push(ctx, r)
	})
}

// dropsSupersededState settles a failed job as done if a newer payload of its id is queued.
func dropsSupersededState(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		for i, x := range r.Settlements {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID, Payloads: 1})
			if err == nil && found.Queued != nil {
				r.Settlements[i] = core.Settlement{
					ID:        x.ID,
					Receipt:   x.Receipt,
					Processed: x.Processed,
					Failed:    x.Failed,
				}
			}
		}
		return s.Turn(ctx, r)
	})
}

func supersedesDuplicates(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		reply.Duplicate, reply.Superseded = reply.Duplicate+reply.Superseded, 0
		return reply, err
	})
}

func countsSupersededAsFailed(s full) full {
	return withCounts(s, func(c *ports.Counts) { c.Failed, c.Superseded = c.Failed+c.Superseded, 0 })
}

func countsNoneSuperseded(s full) full {
	return withCounts(s, func(c *ports.Counts) { c.Superseded = 0 })
}

// withCounts is a store whose Stats return other counts.
func withCounts(s full, change func(*ports.Counts)) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			change(&all[i].Counts)
			for k := range all[i].Shards {
				change(&all[i].Shards[k].Counts)
			}
		}
		return all, err
	})
}
