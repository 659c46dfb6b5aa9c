package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Forget implements ports.Operator. It is atomic for the queue. Pushes wait for it, and it
// for those that are under way: while a caller's transaction that has pushed stays open, it
// fails.
func (s *Store) Forget(ctx context.Context, queue string) error {
	if err := s.look(ctx, queue); err != nil {
		return err
	}
	var (
		st        status
		at        = core.Shard{Queue: queue}
		owner     string
		remaining int64
	)
	err := s.query(ctx, ifRefused, func(rows pgx.Rows) error {
		return readOne(rows, &st, &at.Index, &owner, &remaining)
	}, `SELECT status, coalesce(index, 0), coalesce(owner, ''), coalesce(remaining, 0) FROM {schema}.forget($1, $2)`, queue, s.now())
	switch {
	case err != nil:
		return fmt.Errorf("forget %q, which waits for open transactions that have pushed: %w", queue, err)
	case st == leaseHeld:
		return &ports.HeldError{Shard: at, Owner: owner, Remaining: micros(remaining)}
	case st == notEmpty:
		return fmt.Errorf("%w: %v holds jobs or dead letters; handle or delete jobs, revive or purge dead letters", ports.ErrNotEmpty, at)
	}
	return st.err(at)
}

// Recount implements ports.Operator. The shard works on meanwhile.
func (s *Store) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	if err := s.look(ctx, shard.Queue); err != nil {
		return ports.RecountReply{}, err
	}
	var (
		st          status
		said, there []int64
		both        ports.Counts
		oldest      *core.Instant
	)
	err := s.query(ctx, always, func(rows pgx.Rows) error {
		return readOne(rows, &st, &said, &there, &both.Processed, &both.Failed, &oldest)
	}, `SELECT status, said, there, coalesce(processed, 0), coalesce(failed, 0), oldest FROM {schema}.recount($1, $2)`,
		shard.Queue, index(shard))
	if err == nil {
		err = st.err(shard)
	}
	if err != nil {
		return ports.RecountReply{}, err
	}
	if oldest != nil {
		both.Oldest = core.Head{Due: *oldest, OK: true}
	}
	return ports.RecountReply{Before: withSizes(both, said), After: withSizes(both, there)}, nil
}

// withSizes are counts with how many are fresh, retries, claimed and dead.
func withSizes(c ports.Counts, sizes []int64) ports.Counts {
	c.Fresh, c.Retrying, c.Claimed, c.Dead = sizes[0], sizes[1], sizes[2], sizes[3]
	return c
}
