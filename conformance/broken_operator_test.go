package conformance

import (
	"context"

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
