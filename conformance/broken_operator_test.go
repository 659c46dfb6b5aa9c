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
			found, err := s.Find(ctx, step.Shard.Queue, ref.ID)
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

// firstFirst is a store that expedites in another order than told.
type firstFirst struct{ full }

func expeditesFirst(s full) full { return firstFirst{s} }

func (f firstFirst) Expedite(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	if step.IDs != nil {
		return f.full.Expedite(ctx, step)
	}
	page, err := f.Jobs(ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: step.Shard.Queue, Limit: step.Size()}})
	if err != nil {
		return ports.StepReply{}, err
	}
	var ids []string
	for _, j := range page.Jobs {
		ids = append(ids, j.ID)
	}
	reply, err := f.full.Expedite(ctx, ports.JobStep{Shard: step.Shard, IDs: ids})
	reply.More = true
	return reply, err
}
