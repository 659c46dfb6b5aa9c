package broken

import (
	"context"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenHolds() []brokenStore {
	return []brokenStore{
		{"wakes held jobs with a push", "hold/a held job is never claimed, after any merge", wrapped(wakesHeldAtPush)},
		{
			"wakes held jobs with a revive",
			"hold/a held job is never claimed, after any merge",
			wrapped(wakesHeldAtRevive),
		},
		{"claims held jobs", "hold/a held job is never claimed, after any merge", wrapped(claimsHeld)},
		{
			"forgets a hold over the rest of a claim",
			"hold/a job is held whole if a claim of some of its payloads is exhausted",
			wrapped(holdsForHours),
		},
		{"does not count held jobs", "hold/held jobs are counted among those with a failure", wrapped(countsNoneHeld)},
		{"never releases held jobs", "hold/expedite releases a held job", wrapped(releasesNone)},
		{
			"buries whole jobs for their first payloads",
			"hold/burying the first payload continues with the others",
			wrapped(takesWhole),
		},
		{
			"deletes whole jobs for their first payloads",
			"hold/deleting the first payload continues with the others",
			wrapped(takesWhole),
		},
		{
			"takes any first payload",
			"hold/a step skips jobs whose first payload is another one",
			wrapped(takesAnyFirst),
		},
		{"takes jobs that are not held", "hold/a step can be limited to held jobs", wrapped(takesOthers)},
		{"takes all failed jobs as held", "hold/a step can be limited to held jobs", wrapped(takesFailed)},
		{
			"makes fresh jobs due without their first payload",
			"hold/a step over first payloads keeps the time of a fresh job",
			wrapped(expeditesRests),
		},
		{"makes the rest due now though it was due before", "vectors/first", wrapped(delaysRests)},
		{"expedites first payloads", "hold/refuses an invalid step over first payloads", wrapped(expeditesFirst)},
	}
}

// expedite makes the jobs of some ids due.
func expedite(ctx context.Context, s full, queue string, ids ...string) error {
	for _, id := range ids {
		found, err := s.Find(ctx, ports.FindRequest{Queue: queue, ID: id})
		if err != nil {
			return err
		}
		if _, err := s.Expedite(ctx, ports.JobStep{Shard: found.Shard, IDs: []string{id}}); err != nil {
			return err
		}
	}
	return nil
}

// takesOthers ignores Held, and takesFailed treats it as Failed.
var (
	takesOthers = changesSteps(func(s *ports.JobStep) { s.Held = false })
	takesFailed = changesSteps(func(s *ports.JobStep) { s.Failed, s.Held = s.Failed || s.Held, false })
)

func wakesHeldAtPush(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		if err != nil || r.Rule.Kind != core.Earliest {
			return reply, err
		}
		for _, en := range r.Entries {
			err = expedite(ctx, s, r.Queue, en.ID)
		}
		return reply, err
	})
}

func wakesHeldAtRevive(s full) full {
	return replace(s, "Revive", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		reply, err := s.Revive(ctx, step)
		for _, ref := range step.DeadLetters {
			if err == nil {
				err = expedite(ctx, s, step.Shard.Queue, ref.ID)
			}
		}
		return reply, err
	})
}

// claimsHeld makes the job a due before each turn that wants five jobs.
func claimsHeld(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		if r.Want == 5 {
			_ = expedite(ctx, s, r.Lease.Shard.Queue, "a")
		}
	})
}

func holdsForHours(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			if back := &r.Settlements[i].PutBack; back.Delay == core.Forever && back.RetryCount == 0 {
				back.Delay /= 1 << 20
			}
		}
	})
}

func countsNoneHeld(s full) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			all[i].Held = 0
		}
		return all, err
	})
}

func releasesNone(s full) full {
	return changesSteps(func(step *ports.JobStep) { step.Before = 1 })(s)
}

func takesWhole(s full) full {
	return changesSteps(func(step *ports.JobStep) { step.First = nil })(s)
}

func takesAnyFirst(s full) full {
	taking := func(do env.JobStep) func(context.Context, ports.JobStep) (ports.StepReply, error) {
		return func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
			for i := range step.First {
				found, err := s.Find(ctx, ports.FindRequest{Queue: step.Shard.Queue, ID: step.IDs[i], Payloads: 1})
				if err == nil && found.Queued != nil {
					step.First[i] = found.Queued.Payloads[0].Data
				}
			}
			return do(ctx, step)
		}
	}
	return replace(replace(s, "Bury", taking(s.Bury)), "Delete", taking(s.Delete))
}

func expeditesRests(s full) full {
	taking := func(do env.JobStep) func(context.Context, ports.JobStep) (ports.StepReply, error) {
		return func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
			reply, err := do(ctx, step)
			if err == nil && step.First != nil {
				err = expedite(ctx, s, step.Shard.Queue, step.IDs...)
			}
			return reply, err
		}
	}
	return replace(replace(s, "Bury", taking(s.Bury)), "Delete", taking(s.Delete))
}

func expeditesFirst(s full) full {
	return replace(s, "Expedite", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		step.First = nil
		return s.Expedite(ctx, step)
	})
}

// delaysRests queues the rest of a job that was due before as if it became due now.
func delaysRests(s full) full {
	broken := func(
		do func(context.Context, ports.JobStep) (ports.StepReply, error),
	) func(context.Context, ports.JobStep) (ports.StepReply, error) {
		return func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
			reply, err := do(ctx, step)
			if err != nil || step.First == nil {
				return reply, err
			}

			found, err := s.Find(ctx, ports.FindRequest{Queue: step.Shard.Queue, ID: step.IDs[0], Payloads: 1000})
			if err != nil || found.Queued == nil || found.Queued.PerformAt >= reply.Now {
				return reply, err
			}

			late := found.Queued.Job
			late.PerformAt = reply.Now
			if _, err := s.Delete(ctx, ports.JobStep{Shard: step.Shard, IDs: step.IDs}); err != nil {
				return reply, err
			}

			_, err = s.Import(ctx, ports.ImportRequest{
				Shard:      step.Shard,
				Shards:     1,
				Generation: 1,
				Jobs:       []core.Job{late},
			})
			return reply, err
		}
	}

	return replace(replace(s, "Bury", broken(s.Bury)), "Delete", broken(s.Delete))
}
