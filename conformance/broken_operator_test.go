package conformance

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func ignoresPause(s full) full {
	return replaceErr(s, "Pause", func(context.Context, string) error { return nil })
}

// revivesTwice keeps what it has revived, and revives it again.
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

// stumblesOverIDs fails steps that name an id which is no text.
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

// pagesOverlap returns cursors that stand in front of the last entry.
func pagesOverlap(s full) full {
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		page, err := s.Jobs(ctx, r)
		if page.Next.ID != "" {
			page.Next.ID = page.Next.ID[:len(page.Next.ID)-1]
		}
		return page, err
	})
}

func wakesNobody(s full) full {
	return replace(s, "Wakeups", func(context.Context, []core.Shard) (<-chan core.Shard, error) {
		return make(chan core.Shard), nil
	})
}

func settlesOneByOne(s full) full {
	return replaceErr(s, "Settle", func(ctx context.Context, r storekit.SettleRequest) error {
		for _, one := range r.Settlements {
			if err := s.Settle(ctx, r.Shard, []core.Settlement{one}); err != nil {
				return err
			}
		}
		return nil
	})
}

func forgetsJobs(s full) full { return forgetsDespite(s, ports.ErrNotEmpty) }

func forgetsLeased(s full) full { return forgetsDespite(s, ports.ErrLeaseHeld) }

// forgetsDespite takes no notice of one refusal.
func forgetsDespite(s full, refusal error) full {
	return replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		if err := s.Forget(ctx, queue); !errors.Is(err, refusal) {
			return err
		}
		return nil
	})
}

// releasesSilently drops the wake-ups of shards that nothing is queued in.
func releasesSilently(s full) full {
	return withoutWakeups(s, func(ctx context.Context, shard core.Shard) bool {
		heads, err := s.Heads(ctx, []core.Shard{shard})
		return err != nil || !slices.ContainsFunc(heads.Heads, func(h core.Head) bool { return h.OK })
	})
}

// withoutWakeups drops some of the wake-ups.
func withoutWakeups(s full, drops func(context.Context, core.Shard) bool) full {
	return replace(s, "Wakeups", func(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
		in, err := s.Wakeups(ctx, shards)
		if err != nil {
			return nil, err
		}
		out := make(chan core.Shard)
		go func() {
			defer close(out)
			for shard := range in {
				if drops(ctx, shard) {
					continue
				}
				select {
				case out <- shard:
				case <-ctx.Done():
				}
			}
		}()
		return out, nil
	})
}

// changesSteps is a store in which the steps on jobs are about other jobs than told.
func changesSteps(change func(*ports.JobStep)) func(full) full {
	return func(s full) full {
		for name, do := range map[string]jobStep{"Expedite": s.Expedite, "Bury": s.Bury, "Delete": s.Delete} {
			s = replace(s, name, func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
				change(&step)
				return do(ctx, step)
			})
		}
		return s
	}
}

// ignoresChanges takes named dead letters whenever they last changed.
func ignoresChanges(s full) full {
	ignoring := func(do func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)) func(context.Context, ports.DeadLetterStep) (ports.StepReply, error) {
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

// ignoresBefore doesn't heed Before, and takesBefore takes what was first pushed at that instant
// too.
var (
	ignoresBefore = changesSteps(func(s *ports.JobStep) { s.Before = 0 })
	takesBefore   = changesSteps(func(s *ports.JobStep) {
		if s.Before > 0 {
			s.Before++
		}
	})
	takesFresh = changesSteps(func(s *ports.JobStep) { s.Failed = false })
)

// countsLastPush is a store in which Before bounds the last push of a job, not its first.
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
			step.IDs = slices.DeleteFunc(slices.Clone(step.IDs), func(id string) bool { return last[id] >= step.Before })
		}
	})(noting)
}
