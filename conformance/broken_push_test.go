package conformance

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
			back.Error, _, _ = strings.Cut(back.Error, "\x00")
		}
		return s.Turn(ctx, r)
	})
}
