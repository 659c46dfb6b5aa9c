package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/skeinq/skein/ports"
)

func brokenTracked() []brokenStore {
	return []brokenStore{
		{"lists tracked ids backwards", "tracked/lists ids in order, with the time when each was added", wrapped(changesTracked(slices.Reverse[[]ports.TrackedID]))},
		{"forgets since when an id is tracked", "tracked/a repeated call changes nothing", wrapped(tracksAnew)},
		{"untracks no id", "tracked/untracks an id", wrapped(untracksNone)},
		{"untracks an id whose job has ended", "tracked/tracks ids without a job, and after their jobs have ended", wrapped(tracksJobs)},
		{"keeps the tracked ids of a forgotten queue", "tracked/belongs to its queue and ends with it", wrapped(tracksForever)},
		{"makes room for a tracked id", "tracked/refuses more ids than MaxTracked", wrapped(makesRoom)},
	}
}

func changesTracked(change func([]ports.TrackedID)) func(s full) full {
	return func(s full) full {
		return replace(s, "Tracked", func(ctx context.Context, queue string) ([]ports.TrackedID, error) {
			all, err := s.Tracked(ctx, queue)
			change(all)
			return all, err
		})
	}
}

func tracksAnew(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		if !r.Untrack {
			_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: r.ID, Untrack: true})
		}
		return s.Track(ctx, r)
	})
}

func untracksNone(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		if r.Untrack {
			return true, nil
		}
		return s.Track(ctx, r)
	})
}

func tracksJobs(s full) full {
	return replace(s, "Tracked", func(ctx context.Context, queue string) ([]ports.TrackedID, error) {
		all, err := s.Tracked(ctx, queue)
		return slices.DeleteFunc(all, func(t ports.TrackedID) bool {
			found, err := s.Find(ctx, ports.FindRequest{Queue: queue, ID: t.ID})
			return err == nil && found.Queued == nil
		}), err
	})
}

// tracksForever tracks the ids of a forgotten queue again when the queue is declared.
func tracksForever(s full) full {
	kept := map[string][]ports.TrackedID{}
	h := replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		kept[queue], _ = s.Tracked(ctx, queue)
		return s.Forget(ctx, queue)
	})
	return replace(h, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		reply, err := s.Declare(ctx, r)
		for _, t := range kept[r.Queue] {
			_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: t.ID})
		}
		return reply, err
	})
}

func makesRoom(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		changed, err := s.Track(ctx, r)
		if !errors.Is(err, ports.ErrTooManyTracked) {
			return changed, err
		}
		all, _ := s.Tracked(ctx, r.Queue)
		_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: all[0].ID, Untrack: true})
		return s.Track(ctx, r)
	})
}
