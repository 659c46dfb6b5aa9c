package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func ignoresPause(s full) full {
	h := hooked(s)
	h.pause = func(context.Context, string) error { return nil }
	return h
}

// revivesTwice keeps what it has revived, and revives it again.
func revivesTwice(s full) full {
	h := hooked(s)
	kept := map[string][]core.Payload{}
	h.revive = func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
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
	}
	return h
}

// pagesOverlap gives cursors that stand in front of the last entry.
func pagesOverlap(s full) full {
	h := hooked(s)
	h.jobs = func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		page, err := s.Jobs(ctx, r)
		if page.Next.ID != "" {
			page.Next.ID = page.Next.ID[:len(page.Next.ID)-1]
		}
		return page, err
	}
	return h
}

func wakesNobody(s full) full {
	h := hooked(s)
	h.wakeups = func(context.Context, []core.Shard) (<-chan core.Shard, error) {
		return make(chan core.Shard), nil
	}
	return h
}

func settlesOneByOne(s full) full {
	h := hooked(s)
	h.settle = func(ctx context.Context, shard core.Shard, settle []core.Settlement) error {
		for _, one := range settle {
			if err := s.Settle(ctx, shard, []core.Settlement{one}); err != nil {
				return err
			}
		}
		return nil
	}
	return h
}
