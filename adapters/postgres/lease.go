package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const acquireSQL = `SELECT * FROM {schema}.acquire($1, $2, $3, $4, $5, $6, $7, $8)`

// Acquire implements ports.Consumer. Jobs that a caller's transaction is settling
// are handed over by a later turn.
func (s *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}
	var a answer
	err := s.query(ctx, always, a.read, acquireSQL, r.Shard.Queue, index(r.Shard), int32(r.Shards), r.Generation,
		r.Owner, r.Attempt, r.TTL.Microseconds(), s.now())
	if err != nil {
		return ports.AcquireReply{}, err
	}
	h := &a.header
	switch h.status {
	case leaseHeld:
		return ports.AcquireReply{}, &ports.HeldError{Shard: r.Shard, Owner: h.owner, Remaining: h.remaining}
	case staleAttempt:
		return ports.AcquireReply{}, fmt.Errorf("%w: attempt %d at %v by %q; use a larger one", ports.ErrStaleAttempt, r.Attempt, r.Shard, r.Owner)
	}
	if err := h.status.err(r.Shard); err != nil {
		return ports.AcquireReply{}, err
	}
	sortClaims(a.claims, byID)
	return ports.AcquireReply{Token: h.token, Now: h.now, Remaining: h.remaining, Claims: a.claims, Cancellations: a.cancels}, nil
}

func byID(a, b core.Claim) int { return strings.Compare(a.ID, b.ID) }

// index is a shard's index as SQL takes it; -1, which no queue has, if it can't.
func index(s core.Shard) int32 {
	if s.Index >= core.MaxShards {
		return -1
	}
	return int32(s.Index)
}

const renewSQL = `SELECT status, coalesce(now, 0), coalesce(remaining, 0) FROM {schema}.renew($1, $2, $3, $4, $5, $6, $7)`

// Renew implements ports.Consumer.
func (s *Store) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	if err := r.Validate(); err != nil {
		return ports.RenewReply{}, err
	}
	return s.renew(ctx, always, r.Lease, r.TTL.Microseconds(), nil)
}

// Release implements ports.Consumer. It is not repeated after a lost connection:
// it may have been carried out. Those who wait are told by its commit, since the process
// may end right after it.
func (s *Store) Release(ctx context.Context, l ports.Lease) error {
	s.near.set(l.Shard, false)
	var channel any
	if !s.options.NoWakeups {
		channel = s.channel()
	}
	_, err := s.renew(ctx, ifRefused, l, nil, channel)
	return err
}

// renew renews a lease, or ends it if the TTL is nil, and tells of that on a channel unless
// it is nil.
func (s *Store) renew(ctx context.Context, mode repeat, l ports.Lease, ttl, channel any) (ports.RenewReply, error) {
	var (
		st        status
		reply     ports.RenewReply
		remaining int64
	)
	err := s.query(ctx, mode, func(rows pgx.Rows) error {
		return readOne(rows, &st, &reply.Now, &remaining)
	}, renewSQL, l.Shard.Queue, index(l.Shard), l.Owner, l.Token, ttl, s.now(), channel)
	if err == nil {
		err = st.err(l.Shard)
	}
	if err != nil {
		return ports.RenewReply{}, err
	}
	reply.Remaining = micros(remaining)
	return reply, nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

const headsSQL = `SELECT status, now, head FROM {schema}.heads($1, $2, $3)`

// Heads implements ports.Consumer.
func (s *Store) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	queues, indexes := make([]string, len(shards)), make([]int32, len(shards))
	for i, shard := range shards {
		queues[i], indexes[i] = shard.Queue, index(shard)
	}
	var reply ports.HeadsReply
	err := s.query(ctx, always, func(rows pgx.Rows) error {
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
			head := core.Head{OK: due != nil}
			if due != nil {
				head.Due = core.Instant(*due)
			}
			reply.Heads = append(reply.Heads, head)
		}
		return nil
	}, headsSQL, queues, indexes, s.now())
	if err != nil {
		return ports.HeadsReply{}, err
	}
	return reply, nil
}
