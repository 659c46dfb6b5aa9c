package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const acquireSQL = `SELECT * FROM {schema}.acquire(p_queue => $1, p_index => $2, p_shards => $3, p_generation => $4,
  p_owner => $5, p_attempt => $6, p_ttl => $7, p_now => $8)`

// Acquire implements [ports.Consumer]. Jobs that a caller's transaction is settling
// are handed over by a later turn.
func (s *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}

	var got reply
	err := s.query(ctx, idempotent, got.read, acquireSQL,
		textOrNone(r.Shard.Queue), index(r.Shard), int32(r.Shards), r.Generation,
		r.Owner, r.Attempt, r.TTL.Microseconds(), s.now())
	h := &got.header
	if err == nil {
		err = acquireError(h, &r)
	}
	if err != nil {
		return ports.AcquireReply{}, err
	}

	sortClaims(got.claims, byID)
	return ports.AcquireReply{
		Token:         h.LeaseToken,
		Now:           h.Now,
		Remaining:     micros(h.Remaining),
		Claims:        got.claims,
		Cancellations: h.cancellations(),
		Head:          newHead(h.Head),
		Paused:        h.Paused,
	}, nil
}

// acquireError returns the port's error for an acquire that was refused, or nil.
func acquireError(h *header, r *ports.AcquireRequest) error {
	switch h.Status {
	case statusLeaseHeld:
		return &ports.HeldError{Shard: r.Shard, Owner: h.LeaseOwner, Remaining: micros(h.Remaining)}
	case statusStaleAttempt:
		return storekit.StaleAttempt(r)
	}
	return h.Status.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
}

// index returns a shard's index for SQL: -1, which no queue has, if it is out of range.
func index(s core.Shard) int32 {
	if s.Index < 0 || s.Index >= core.MaxShards {
		return -1
	}
	return int32(s.Index)
}

const renewSQL = `SELECT status, coalesce(now, 0), coalesce(remaining, 0), coalesce(paused, false), head
FROM {schema}.renew(p_queue => $1, p_index => $2, p_owner => $3, p_token => $4, p_ttl => $5, p_now => $6)`

// Renew implements [ports.Consumer].
func (s *Store) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	if err := r.Validate(); err != nil {
		return ports.RenewReply{}, err
	}

	var (
		st        status
		reply     ports.RenewReply
		remaining int64
		due       *int64
	)

	err := s.queryOne(ctx, idempotent, []any{&st, &reply.Now, &remaining, &reply.Paused, &due}, renewSQL,
		textOrNone(r.Lease.Shard.Queue), index(r.Lease.Shard),
		textOrNone(r.Lease.Owner), r.Lease.Token, r.TTL.Microseconds(), s.now())
	if err == nil {
		err = st.leaseErr(r.Lease)
	}
	if err != nil {
		return ports.RenewReply{}, err
	}

	reply.Remaining, reply.Head = micros(remaining), newHead(due)
	return reply, nil
}

const releaseSQL = `SELECT {schema}.release(p_queue => $1, p_index => $2, p_owner => $3, p_token => $4,
  p_now => $5, p_channel => $6)`

// Release implements [ports.Consumer]. It is not repeated after a lost connection, because it may
// have been executed. Its commit sends a wake-up, since the process may end right after it.
func (s *Store) Release(ctx context.Context, l ports.Lease) error {
	s.idle.set(l.Shard, false)
	var st status
	err := s.queryOne(ctx, ifRolledBack, []any{&st}, releaseSQL,
		textOrNone(l.Shard.Queue), index(l.Shard), textOrNone(l.Owner), l.Token, s.now(), s.channelOrNull())
	if err != nil {
		return err
	}
	return st.leaseErr(l)
}

const headsSQL = `SELECT status, now, head FROM {schema}.heads(p_queues => $1, p_indexes => $2, p_now => $3)`

// Heads implements [ports.Consumer].
func (s *Store) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	queues, indexes := make([]string, len(shards)), make([]int32, len(shards))
	for i, shard := range shards {
		queues[i], indexes[i] = textOrNone(shard.Queue), index(shard)
	}

	var reply ports.HeadsReply
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply = ports.HeadsReply{Heads: make([]core.Head, 0, len(shards))}
		for rows.Next() {
			var (
				st  status
				due *int64
			)
			if err := rows.Scan(&st, &reply.Now, &due); err != nil {
				return err
			}
			if err := st.err(shards[len(reply.Heads)]); err != nil {
				return err
			}
			reply.Heads = append(reply.Heads, newHead(due))
		}
		return nil
	}, headsSQL, queues, indexes, s.now())
	if err != nil {
		return ports.HeadsReply{}, err
	}
	return reply, nil
}
