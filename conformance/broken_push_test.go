package conformance

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func losesPayload(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		var kept []core.Entry
		for _, en := range r.Entries {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: en.ID, Payloads: 1000}); err == nil && found.Queued == nil {
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
