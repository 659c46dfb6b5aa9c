package redis

import (
	"cmp"
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Ping implements ports.Registry. What the server is, is looked at once; after
// that one command asks whether it answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err, ended := await(ctx, s.crew, func() error { return translate(s.client.HLen(ctx, s.queuesKey()).Err()) })
	return cmp.Or(ended, err)
}

// Forget implements ports.Operator. Shards go first, each only if it is empty and
// free, and the queue's record last. A Declare in between may bring shards back:
// then the record comes back too.
func (s *Store) Forget(ctx context.Context, name string) error {
	q, err := s.queue(ctx, name)
	if err != nil {
		return err
	}
	for _, remove := range []bool{false, true} {
		if err := s.vacate(ctx, q, remove, nil); err != nil {
			return err
		}
	}
	forget := call{script: forgetScript, keys: []any{s.queuesKey()}, args: []any{name, q.text}, once: true}
	value, err := s.run(ctx, forget)
	if err != nil {
		return err
	}
	if removed, _ := value.(int64); removed == 0 {
		return fmt.Errorf("%w: %q was changed meanwhile; forget it again", ports.ErrNotEmpty, name)
	}
	back := false
	if err := s.vacate(ctx, q, false, func() { back = true }); err != nil || !back {
		return err
	}
	if _, err := s.Declare(ctx, ports.DeclareRequest{Queue: name, Shards: q.Shards, IndexIDs: q.IndexIDs}); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q was declared meanwhile; stop what pushes to it, and forget it again", ports.ErrNotEmpty, name)
}

// vacate looks at all shards, and removes them if told to. It reports each that is
// there and empty.
func (s *Store) vacate(ctx context.Context, q record, remove bool, there func()) error {
	return s.eachShard(ctx, q, func(shard core.Shard) call {
		return call{script: vacantScript, keys: s.firstKeys(shard, allKeys), args: []any{s.now(), flag(remove)}}
	}, func(shard core.Shard, value any) error {
		r := replyOf(value)
		switch r.text() {
		case "ok":
			if there != nil {
				there()
			}
			return nil
		case "unknown": // an earlier Forget has removed it
			return nil
		case "jobs":
			return fmt.Errorf("%w: %v holds %d queued, %d claimed and %d dead; handle or delete jobs, revive or purge dead letters",
				ports.ErrNotEmpty, shard, r.int(), r.int(), r.int())
		case "held":
			return &ports.HeldError{Shard: shard, Owner: r.text(), Remaining: micros(r.int())}
		}
		return errReply
	})
}

// Recount implements ports.Operator. What Stats says are the sizes of the lists
// themselves, so that there is nothing to correct.
func (s *Store) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	value, err := s.run(ctx, s.statsCall(shard))
	if err != nil {
		return ports.RecountReply{}, err
	}
	_, stats, known, err := parseShardStats(shard, value)
	if err == nil && !known {
		err = s.absent(ctx, shard)
	}
	return ports.RecountReply{Before: stats.Counts, After: stats.Counts}, err
}
