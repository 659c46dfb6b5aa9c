package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Record implements [ports.Registry].
func (s *Store) Record(ctx context.Context, r ports.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}

	var queues []string
	var minutes, counted []int64
	var stats [][]byte
	for _, one := range storekit.NewestRecords(r.Records) {
		if core.ValidateQueue(one.Queue, 1) != nil {
			continue // nobody can have declared it
		}
		queues, minutes = append(queues, one.Queue), append(minutes, int64(one.Minute))
		counted = append(counted, int64(min(one.Stats.Counted(), math.MaxInt64)))
		stats = append(stats, storekit.AppendStats(nil, &one.Stats))
	}

	if len(queues) == 0 {
		return translate(ctx, ctx.Err())
	}
	return s.query(ctx, idempotent, noRows,
		`SELECT {schema}.record(p_owner => $1, p_now => $2, p_queues => $3,
  p_minutes => $4, p_counted => $5, p_stats => $6)`,
		r.Owner, s.now(), queues, minutes, counted, stats)
}

// historySQL lists the counts of a queue, and at least one row if the queue is known, each with
// the clock.
//
//	$1 now, $2 the queue, $3 from, $4 to
const historySQL = `
WITH clock AS MATERIALIZED (
  SELECT {schema}.clock($1) AS now
)
SELECT clock.now, h.minute, h.stats
FROM clock CROSS JOIN {schema}.queues q
LEFT JOIN {schema}.minute_records h ON h.queue = q.id AND h.minute >= $3 AND h.minute < $4
WHERE q.name = $2`

// History implements [ports.Inspector]. It leaves out a record that can't be read.
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if err := r.Validate(); err != nil {
		return ports.HistoryReply{}, err
	}

	to := int64(r.To)
	if to == 0 {
		to = math.MaxInt64
	}

	var sums *storekit.History
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		sums = nil
		var now core.Instant
		var minute *core.Instant
		var stats []byte
		return eachRow(rows, func() error {
			if err := rows.Scan(&now, &minute, (*pgtype.DriverBytes)(&stats)); err != nil {
				return err
			}
			if sums == nil {
				sums = storekit.NewHistory(r, now)
			}
			if minute == nil {
				return nil
			}
			_ = sums.AddEncoded(*minute, stats) // a damaged record is skipped: it hides no other
			return nil
		})
	}, historySQL, s.now(), textOrNone(r.Queue), int64(r.From), to)

	if err == nil && sums == nil {
		err = storekit.UnknownQueue(r.Queue)
	}
	if err != nil {
		return ports.HistoryReply{}, err
	}
	return ports.HistoryReply{Minutes: sums.List()}, nil
}
