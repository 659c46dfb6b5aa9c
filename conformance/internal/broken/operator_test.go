package broken

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func ignoresPause(s full) full {
	return replaceErr(s, "Pause", func(context.Context, string) error { return nil })
}

// revivesTwice keeps the payloads that it has revived, and revives them again.
func revivesTwice(s full) full {
	kept := map[string][]core.Payload{}
	return replace(s, "Revive", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		for _, ref := range step.DeadLetters {
			found, err := s.Find(ctx, ports.FindRequest{Queue: step.Shard.Queue, ID: ref.ID, Payloads: 1000})
			if err == nil && found.DeadLetter != nil {
				kept[ref.ID] = found.DeadLetter.Payloads
				continue
			}

			for _, p := range kept[ref.ID] {
				en := core.Entry{ID: ref.ID, Payload: p}
				push := ports.PushRequest{Queue: step.Shard.Queue, Shards: 1, Generation: 1, Entries: []core.Entry{en}}
				if _, err := s.Push(ctx, push); err != nil {
					return ports.StepReply{}, err
				}
			}
		}

		return s.Revive(ctx, step)
	})
}

// stumblesOverIDs fails a Bury that names an id that is not UTF-8.
func stumblesOverIDs(s full) full {
	return replace(s, "Bury", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		for _, id := range step.IDs {
			if !utf8.ValidString(id) {
				return ports.StepReply{}, core.ErrInvalidID
			}
		}
		return s.Bury(ctx, step)
	})
}

func forgetsJobs(s full) full { return forgetsDespite(s, ports.ErrNotEmpty) }

func forgetsLeased(s full) full { return forgetsDespite(s, ports.ErrLeaseHeld) }

// forgetsDespite reports success instead of the given refusal.
func forgetsDespite(s full, refusal error) full {
	return replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		if err := s.Forget(ctx, queue); !errors.Is(err, refusal) {
			return err
		}
		return nil
	})
}

// changesSteps returns a function that changes the requests of Expedite, Bury and Delete of a
// store.
func changesSteps(change func(*ports.JobStep)) func(full) full {
	return func(s full) full {
		for name, do := range map[string]env.JobStep{"Expedite": s.Expedite, "Bury": s.Bury, "Delete": s.Delete} {
			s = replace(s, name, func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
				change(&step)
				return do(ctx, step)
			})
		}
		return s
	}
}

// ignoresChanges ignores Before for named dead letters.
func ignoresChanges(s full) full {
	ignoring := func(
		do func(context.Context, ports.DeadLetterStep) (ports.StepReply, error),
	) func(context.Context, ports.DeadLetterStep) (ports.StepReply, error) {
		return func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
			if step.DeadLetters != nil {
				step.Before = 0
			}
			return do(ctx, step)
		}
	}
	revives := replace(s, "Revive", ignoring(s.Revive))
	return replace(revives, "Purge", ignoring(s.Purge))
}

// ignoresBefore ignores Before. takesBefore also takes jobs that were first pushed at that instant.
// takesFresh ignores Failed.
var (
	ignoresBefore = changesSteps(func(s *ports.JobStep) { s.Before = 0 })
	takesBefore   = changesSteps(func(s *ports.JobStep) {
		if s.Before > 0 {
			s.Before++
		}
	})
	takesFresh = changesSteps(func(s *ports.JobStep) { s.Failed = false })
)

// countsLastPush compares Before with the last push of a job instead of the first.
func countsLastPush(s full) full {
	last := map[string]core.Instant{}
	noting := replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		for _, en := range r.Entries {
			last[en.ID] = reply.Now
		}
		return reply, err
	})

	return changesSteps(func(step *ports.JobStep) {
		if step.Before > 0 {
			step.IDs = slices.DeleteFunc(slices.Clone(step.IDs), func(id string) bool {
				return last[id] >= step.Before
			})
		}
	})(noting)
}

// inSteps is a store that recounts in two steps. The Next of the first is "half". change alters the
// reply of the second.
func inSteps(s full, change func(first ports.RecountReply, second *ports.RecountReply)) full {
	var first ports.RecountReply
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		half := r.After == "half"
		if half {
			r.After = ""
		}

		reply, err := s.Recount(ctx, r)
		if err != nil {
			return reply, err
		}

		if half {
			reply.Counted -= first.Counted
			change(first, &reply)
			return reply, nil
		}

		reply.Counted /= 2
		reply.Next = "half"
		first = reply
		return reply, nil
	})
}

// recountsForEver repeats its second step for ever.
func recountsForEver(s full) full {
	return inSteps(s, func(_ ports.RecountReply, second *ports.RecountReply) { second.Next = "half" })
}

// recountsHalf counts no entry in its second step.
func recountsHalf(s full) full {
	return inSteps(s, func(_ ports.RecountReply, second *ports.RecountReply) { second.Counted = 0 })
}

// recountsWhatWas ends with the counts of its first step, even if the shard has changed since.
func recountsWhatWas(s full) full {
	return inSteps(s, func(first ports.RecountReply, second *ports.RecountReply) { second.After = first.After })
}

// recountsTwice adds the counts of a step to its earlier counts.
func recountsTwice(s full) full {
	seen := map[string]int64{}
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		reply, err := s.Recount(ctx, r)
		reply.After.Fresh += seen[r.After]
		seen[r.After] += reply.Before.Fresh
		return reply, err
	})
}

// recountsFromAnywhere counts all entries, whatever After is.
func recountsFromAnywhere(s full) full {
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		r.After = ""
		return s.Recount(ctx, r)
	})
}

func brokenRecounts() []brokenStore {
	return []brokenStore{
		{
			"claims beside a job that runs alone after a recount",
			"recount/does not disturb a job that runs alone",
			wrapped(recountsAway),
		},
		{"loses the place of a recount", "recount/counts every entry over its steps", wrapped(recountsForEver)},
		{"ends a recount early", "recount/counts every entry over its steps", wrapped(recountsHalf)},
		{
			"corrects counts by those of earlier steps",
			"recount/works while jobs of the shard run",
			wrapped(recountsWhatWas),
		},
		{"adds a repeated step's counts", "recount/may be repeated", wrapped(recountsTwice)},
		{"recounts from an invalid place", "recount/refuses an invalid shard or place", wrapped(recountsFromAnywhere)},
	}
}

// importsOther changes each dead letter before it imports them.
func importsOther(s full, change func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter)) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		r.DeadLetters = slices.Clone(r.DeadLetters)
		for i := range r.DeadLetters {
			change(ctx, &r, &r.DeadLetters[i])
		}
		return s.Import(ctx, r)
	})
}

func importsWithoutMeta(s full) full {
	return importsOther(s, func(_ context.Context, _ *ports.ImportRequest, d *core.DeadLetter) {
		d.Payloads = slices.Clone(d.Payloads)
		for i := range d.Payloads {
			d.Payloads[i].Meta = nil
		}
	})
}

func importsAsOfNow(s full) full {
	return importsOther(s, func(ctx context.Context, _ *ports.ImportRequest, d *core.DeadLetter) {
		if nodes, err := s.Nodes(ctx); err == nil && d.ChangedAt <= core.MaxInstant && d.ChangedAt >= 0 {
			d.ChangedAt = nodes.Now
		}
	})
}

// importsNewest dates an imported dead letter after the one that it meets.
func importsNewest(s full) full {
	return importsOther(s, func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: d.ID, Payloads: 1000})
		if err == nil && found.DeadLetter != nil && found.DeadLetter.ChangedAt >= d.ChangedAt && d.ChangedAt >= 0 {
			d.ChangedAt = found.DeadLetter.ChangedAt + 1
		}
	})
}

func importsTwice(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		reply, err := s.Import(ctx, r)
		if err == nil && len(r.DeadLetters) > 0 {
			reply.Handled = reply.Reached
		}
		return reply, err
	})
}

// doublesImports changes the imported Data of an id that has a dead letter, so equal payloads don't
// merge.
func doublesImports(s full) full {
	return importsOther(s, func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: d.ID, Payloads: 1000})
		if err != nil || found.DeadLetter == nil {
			return
		}
		d.Payloads = slices.Clone(d.Payloads)
		for i := range d.Payloads {
			d.Payloads[i].Data = append(slices.Clone(d.Payloads[i].Data), 0)
		}
	})
}

// importsOtherJobs changes each job before it imports them.
func importsOtherJobs(change func(s full, ctx context.Context, r *ports.ImportRequest, j *core.Job)) func(full) full {
	return func(s full) full {
		return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
			if r.Validate() == nil {
				r.Jobs = slices.Clone(r.Jobs)
				for i := range r.Jobs {
					r.Jobs[i].Payloads = slices.Clone(r.Jobs[i].Payloads)
					change(s, ctx, &r, &r.Jobs[i])
				}
			}
			return s.Import(ctx, r)
		})
	}
}

var (
	importsJobsWithoutMeta = importsOtherJobs(func(_ full, _ context.Context, _ *ports.ImportRequest, j *core.Job) {
		for i := range j.Payloads {
			j.Payloads[i].Meta = nil
		}
	})
	importsJobsFresh = importsOtherJobs(func(_ full, _ context.Context, _ *ports.ImportRequest, j *core.Job) {
		j.RetryCount, j.Failures = core.FreshRetryCount, nil
	})
	forgetsTheirFirstPush = importsOtherJobs(func(s full, ctx context.Context, _ *ports.ImportRequest, j *core.Job) {
		if nodes, err := s.Nodes(ctx); err == nil {
			j.FirstPush = nodes.Now
		}
	})
	// importsAsPutBack keeps the imported job's state, as if the job were put back.
	importsAsPutBack = importsOtherJobs(func(s full, ctx context.Context, r *ports.ImportRequest, j *core.Job) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: j.ID, Payloads: 1000})
		if err != nil || found.Queued == nil || found.Queued.RetryCount < j.RetryCount {
			return
		}
		coming := core.MergePayloads(found.Queued.Payloads, j.Payloads)
		first := min(found.Queued.FirstPush, j.FirstPush)
		if _, err := s.Delete(ctx, ports.JobStep{Shard: r.Shard, IDs: []string{j.ID}}); err == nil {
			j.Payloads, j.FirstPush = coming, first
		}
	})
	// importsOverHeld keeps the state with more failures, even if the other job is held.
	importsOverHeld = importsOtherJobs(func(s full, ctx context.Context, r *ports.ImportRequest, j *core.Job) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: j.ID, Payloads: 1000})
		if err == nil && found.Queued != nil && found.Queued.Held() && j.RetryCount > found.Queued.RetryCount {
			j.Payloads = core.MergePayloads(found.Queued.Payloads, j.Payloads)
			_, _ = s.Delete(ctx, ports.JobStep{Shard: r.Shard, IDs: []string{j.ID}})
		}
	})
	// importsAsLater keeps the later time of two fresh jobs.
	importsAsLater = importsOtherJobs(func(s full, ctx context.Context, r *ports.ImportRequest, j *core.Job) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: j.ID})
		if err == nil && found.Queued != nil && j.Fresh() {
			j.PerformAt = max(j.PerformAt, found.Queued.PerformAt)
		}
	})
	// replacesPayloads keeps the imported payload, whatever its score.
	replacesPayloads = importsOtherJobs(func(s full, ctx context.Context, r *ports.ImportRequest, j *core.Job) {
		_, _ = s.Delete(ctx, ports.JobStep{
			Shard:    r.Shard,
			IDs:      []string{j.ID},
			Payloads: [][]core.Payload{sameData(s, ctx, r.Shard, j.ID, j.Payloads)},
		})
	})
)

// sameData returns the payloads of a queued job that have the Data of one of the given payloads.
func sameData(s full, ctx context.Context, at core.Shard, id string, payloads []core.Payload) []core.Payload {
	found, err := s.Find(ctx, ports.FindRequest{Queue: at.Queue, ID: id, Payloads: 1000})
	if err != nil || found.Queued == nil {
		return []core.Payload{}
	}
	return slices.DeleteFunc(slices.Clone(found.Queued.Payloads), func(p core.Payload) bool {
		return !slices.ContainsFunc(payloads, func(q core.Payload) bool { return bytes.Equal(p.Data, q.Data) })
	})
}

// deletesOther is a store whose Delete of payloads does something else.
func deletesOther(change func(s full, ctx context.Context, step *ports.JobStep)) func(full) full {
	return func(s full) full {
		return replace(s, "Delete", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
			if step.Payloads != nil && step.Validate() == nil {
				change(s, ctx, &step)
			}
			return s.Delete(ctx, step)
		})
	}
}

var (
	deletesWholeJobs = deletesOther(func(_ full, _ context.Context, step *ports.JobStep) { step.Payloads = nil })
	// deletesByData ignores the scores, so it removes payloads that have merged since.
	deletesByData = deletesOther(func(s full, ctx context.Context, step *ports.JobStep) {
		step.Payloads = slices.Clone(step.Payloads)
		for i, id := range step.IDs {
			step.Payloads[i] = sameData(s, ctx, step.Shard, id, step.Payloads[i])
		}
	})
)

func importsWhileRunning(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		r.OnlyPaused = false
		return s.Import(ctx, r)
	})
}

// keepsRetries keeps the state of a job whose first payload is deleted.
func keepsRetries(s full) full {
	return replace(s, "Delete", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		var before ports.Found
		if step.Payloads != nil && len(step.IDs) == 1 {
			before, _ = s.Find(ctx, ports.FindRequest{Queue: step.Shard.Queue, ID: step.IDs[0]})
		}

		reply, err := s.Delete(ctx, step)
		after, missing := s.Find(ctx, ports.FindRequest{
			Queue:    step.Shard.Queue,
			ID:       strings.Join(step.IDs, ""),
			Payloads: 1000,
		})

		if err == nil && missing == nil && before.Queued != nil && after.Queued != nil {
			after.Queued.State = before.Queued.State
			if q, err := s.Queues(ctx); err == nil && len(q) > 0 {
				_, _ = s.Import(ctx, ports.ImportRequest{
					Shard:      step.Shard,
					Shards:     q[0].Shards,
					Generation: q[0].Generation,
					Jobs:       []core.Job{after.Queued.Job},
				})
			}
		}

		return reply, err
	})
}

// buriesWholeJobs ignores Payloads where it should refuse them.
func buriesWholeJobs(s full) full {
	return replace(s, "Bury", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		step.Payloads = nil
		return s.Bury(ctx, step)
	})
}

// importsInPart imports dead letters one by one, until one is refused.
func importsInPart(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (all ports.StepReply, err error) {
		for _, d := range r.DeadLetters {
			one := r
			one.DeadLetters = []core.DeadLetter{d}
			reply, err := s.Import(ctx, one)
			if err != nil {
				return ports.StepReply{}, err
			}
			all.Now = reply.Now
			all.Handled, all.Reached = all.Handled+reply.Handled, all.Reached+reply.Reached
		}
		return all, nil
	})
}

// importsInPlace changes scores of -0 to 0 in its caller's payloads.
func importsInPlace(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		for _, d := range r.DeadLetters {
			for i := range d.Payloads {
				d.Payloads[i].Score = core.NormalScore(d.Payloads[i].Score)
			}
		}
		return s.Import(ctx, r)
	})
}

// keepsNone purges dead letters that are to be kept.
func keepsNone(s full) full {
	return replace(s, "Purge", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		if step.Validate() == nil {
			step.Keep = 0
		}
		return s.Purge(ctx, step)
	})
}
