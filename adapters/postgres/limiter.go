package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const takeSQL = `SELECT status, coalesce(now, 0), used, starts, granted, firsts, stops
FROM {schema}.take(p_queue => $1, p_keys => $2, p_intervals => $3, p_tolerances => $4, p_uses => $5, p_holds => $6,
  p_wants => $7, p_aheads => $8, p_soons => $9, p_now => $10)`

// Take implements [ports.Limiter].
func (s *Store) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TakeReply{}, err
	}

	n := len(r.Takes)
	keys := make([]string, n)
	intervals, tolerances := make([]int64, n), make([]int64, n)
	uses, holds, wants := make([]int64, n), make([]int64, n), make([]int64, n)
	aheads, soons := make([]int64, n), make([]int64, n)
	for i := range r.Takes {
		t := &r.Takes[i]
		keys[i], uses[i], wants[i] = t.Key, int64(t.Use), int64(t.Want)
		holds[i], aheads[i], soons[i] = t.Hold.Microseconds(), t.Ahead.Microseconds(), t.Soon.Microseconds()
		intervals[i], tolerances[i] = t.Rate.Interval().Microseconds(), t.Rate.Tolerance().Microseconds()
	}

	var (
		st            status
		reply         ports.TakeReply
		used, granted []int
		// starts, firsts and stopped are the times of the grants.
		starts, firsts, stopped []core.Instant
	)

	// A repeat would take further grants.
	err := s.queryOne(ctx, ifRolledBack, []any{&st, &reply.Now, &used, &starts, &granted, &firsts, &stopped},
		takeSQL, textOrNone(r.Queue), keys, intervals, tolerances, uses, holds, wants, aheads, soons, s.now())
	if err == nil {
		err = st.err(core.Shard{Queue: r.Queue})
	}
	if err != nil {
		return ports.TakeReply{}, err
	}

	reply.Grants = make([]ports.Grant, n)
	for i := range granted {
		reply.Grants[i] = ports.Grant{
			Used: used[i], Start: starts[i], Granted: granted[i], First: firsts[i], Stopped: stopped[i],
		}
	}
	return reply, nil
}

// Stop implements [ports.Limiter].
func (s *Store) Stop(ctx context.Context, r ports.StopRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}

	var st status
	err := s.queryOne(ctx, idempotent, []any{&st},
		`SELECT status FROM {schema}.stop(p_queue => $1, p_key => $2, p_for => $3, p_now => $4)`,
		textOrNone(r.Queue), r.Key, r.For.Microseconds(), s.now())
	if err != nil {
		return err
	}
	return st.err(core.Shard{Queue: r.Queue})
}

// limitsSQL lists the limiters of a queue that lie ahead, and at least one row if the queue is
// known.
//
//	$1 the queue, $2 the clock, $3 the maximum number of limiters
const limitsSQL = `
WITH c AS MATERIALIZED (SELECT {schema}.clock($2) AS now)
SELECT c.now, l.key IS NOT NULL, coalesce(l.key, ''), coalesce(l.next, 0), coalesce(l.started, 0), coalesce(l.last, 0),
  coalesce(l.stopped, 0), coalesce(l.changed, 0)
FROM c CROSS JOIN {schema}.queues q LEFT JOIN LATERAL (
  SELECT k.* FROM {schema}.limiters k WHERE k.queue = q.id AND greatest(k.next, k.started, k.stopped) > c.now
  ORDER BY greatest(k.next, k.started, k.stopped) DESC, k.key DESC LIMIT $3
) l ON true
WHERE q.name = $1 COLLATE "C"
ORDER BY greatest(l.next, l.started, l.stopped) DESC, l.key DESC`

// Limits implements [ports.Limiter].
func (s *Store) Limits(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
	var reply ports.LimitsReply
	known := false
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply, known = ports.LimitsReply{}, false
		return eachRow(rows, func() error {
			var one ports.LimiterView
			some := false
			err := rows.Scan(&reply.Now, &some, &one.Key, &one.Next, &one.Started, &one.Last, &one.Stopped, &one.Changed)
			if known = true; some {
				reply.Limits = append(reply.Limits, one)
			}
			return err
		})
	}, limitsSQL, textOrNone(r.Queue), s.now(), r.Size())

	if err == nil && !known {
		err = storekit.UnknownQueue(r.Queue)
	}
	return reply, err
}
