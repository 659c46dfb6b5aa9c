package postgres

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Record implements [ports.Registry]. It reads what it replaces, and then stores the records and the
// change of each day by one statement, which refuses if another call of the owner came in between.
func (s *Store) Record(ctx context.Context, r ports.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	records := slices.DeleteFunc(storekit.NewestRecords(r.Records), func(one ports.Record) bool {
		return core.ValidateQueue(one.Queue, 1) != nil // nobody can have declared it
	})
	if len(records) == 0 {
		return translate(ctx, ctx.Err())
	}

	for {
		changes, err := s.recordChanges(ctx, r.Owner, records)
		if err != nil || len(changes.queues) == 0 {
			return err
		}
		var stored bool
		err = s.queryOne(ctx, idempotent, []any{&stored},
			`SELECT {schema}.record(p_owner => $1, p_now => $2, p_queues => $3, p_minutes => $4,
  p_known => $5, p_counted => $6, p_stats => $7, p_day_queues => $8, p_days => $9, p_changes => $10)`,
			r.Owner, s.now(), changes.queues, changes.minutes, changes.known, changes.counted, changes.stats,
			changes.dayQueues, changes.days, changes.sums)
		if err != nil || stored {
			return err
		}
	}
}

// recordChanges are the arguments of the function record.
type recordChanges struct {
	queues                  []int32
	minutes, known, counted []int64
	stats                   [][]byte
	dayQueues               []int32
	days                    []int64
	sums                    []float64
}

// recordChanges returns the changes by the records that the store lacks.
func (s *Store) recordChanges(ctx context.Context, owner string, records []ports.Record) (recordChanges, error) {
	queues, minutes, counted := make([]string, len(records)), make([]int64, len(records)), make([]int64, len(records))
	for i := range records {
		queues[i], minutes[i] = records[i].Queue, int64(records[i].Minute)
		counted[i] = int64(min(records[i].Stats.Counted(), math.MaxInt64))
	}

	var c recordChanges
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		c = recordChanges{}
		var place, known int64
		var queue int32
		var stats []byte
		return eachRow(rows, func() error {
			if err := rows.Scan(&place, &queue, &known, (*pgtype.DriverBytes)(&stats)); err != nil {
				return err
			}
			before, _ := storekit.ReadStats(stats) // a damaged record counts nothing
			at := place - 1
			c.add(queue, &records[at], known, counted[at], &before)
			return nil
		})
	}, `SELECT place, queue, known, stats FROM {schema}.known_records(p_owner => $1, p_now => $2,
  p_queues => $3, p_minutes => $4, p_counted => $5)`, owner, s.now(), queues, minutes, counted)
	return c, err
}

// add adds a record of a queue. known is how much the replaced row counts, and before its statistics.
func (c *recordChanges) add(queue int32, r *ports.Record, known, counted int64, before *core.Stats) {
	c.queues, c.minutes = append(c.queues, queue), append(c.minutes, int64(r.Minute))
	c.known, c.counted = append(c.known, known), append(c.counted, counted)
	c.stats = append(c.stats, storekit.AppendStats(nil, &r.Stats))

	day := int64(r.Minute.Day())
	if last := len(c.days) - 1; last < 0 || c.days[last] != day || c.dayQueues[last] != queue {
		c.dayQueues, c.days = append(c.dayQueues, queue), append(c.days, day)
		c.sums = append(c.sums, make([]float64, dayValues)...)
	}
	sums := c.sums[len(c.sums)-dayValues:]
	after, was := daySums(&r.Stats), daySums(before)
	for i := range sums {
		sums[i] += after[i] - was[i]
	}
}

// dayValues is the number of values of a day.
const dayValues = 6 + 2*core.HistogramBuckets

// daySums returns statistics in the form of the column sums. Numbers of more than 2^53 lose digits.
func daySums(s *core.Stats) []float64 {
	values := make([]float64, 0, dayValues)
	for _, n := range []uint64{s.Processed, s.Failed, s.WaitSum, s.RunSum} {
		values = append(values, float64(n))
	}
	values = append(values, s.WaitSquares, s.RunSquares)
	for _, h := range []*core.Histogram{&s.Wait, &s.Run} {
		for _, n := range h {
			values = append(values, float64(n))
		}
	}
	return values
}

// parseDaySums is the inverse of daySums. ok is false for another number of values.
func parseDaySums(values []float64) (s core.Stats, ok bool) {
	if len(values) != dayValues {
		return s, false
	}
	for at, n := range []*uint64{&s.Processed, &s.Failed, &s.WaitSum, &s.RunSum} {
		*n = wholeNumber(values[at])
	}
	s.WaitSquares, s.RunSquares = values[4], values[5]
	for at := range core.HistogramBuckets {
		s.Wait[at], s.Run[at] = wholeNumber(values[6+at]), wholeNumber(values[6+core.HistogramBuckets+at])
	}
	return s, true
}

// wholeNumber returns the nearest number from 0 to 2^63.
func wholeNumber(x float64) uint64 {
	if !(x > 0) {
		return 0
	}
	return uint64(math.Round(min(x, 1<<63)))
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

// daysSQL is historySQL for days.
const daysSQL = `
WITH clock AS MATERIALIZED (
  SELECT {schema}.clock($1) AS now
)
SELECT clock.now, d.day, d.sums
FROM clock CROSS JOIN {schema}.queues q
LEFT JOIN {schema}.day_records d ON d.queue = q.id AND d.day >= $3 AND d.day < $4
WHERE q.name = $2`

// History implements [ports.Inspector]. It leaves out a record that can't be read.
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if err := r.Validate(); err != nil {
		return ports.HistoryReply{}, err
	}

	from, to := int64(r.From), int64(r.To)
	if to == 0 {
		to = math.MaxInt64
	}
	read, template := scanMinutes, historySQL
	if r.Step == ports.Day {
		read, template, from = scanDays, daysSQL, int64(max(0, r.From).Day())
	}

	var sums *storekit.History
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		sums = nil
		return read(rows, func(now core.Instant) *storekit.History {
			if sums == nil {
				sums = storekit.NewHistory(r, now)
			}
			return sums
		})
	}, template, s.now(), textOrNone(r.Queue), from, to)

	if err == nil && sums == nil {
		err = storekit.UnknownQueue(r.Queue)
	}
	if err != nil {
		return ports.HistoryReply{}, err
	}
	return ports.HistoryReply{Minutes: sums.List()}, nil
}

// scanMinutes adds the rows of historySQL to the history that at returns for the present time.
func scanMinutes(rows pgx.Rows, at func(now core.Instant) *storekit.History) error {
	var now core.Instant
	var minute *core.Instant
	var stats []byte
	return eachRow(rows, func() error {
		if err := rows.Scan(&now, &minute, (*pgtype.DriverBytes)(&stats)); err != nil {
			return err
		}
		if sums := at(now); minute != nil {
			_ = sums.AddEncoded(*minute, stats) // a damaged record is skipped: it hides no other
		}
		return nil
	})
}

// scanDays is scanMinutes for daysSQL.
func scanDays(rows pgx.Rows, at func(now core.Instant) *storekit.History) error {
	var now core.Instant
	var day *core.Instant
	var values []float64
	return eachRow(rows, func() error {
		if err := rows.Scan(&now, &day, &values); err != nil {
			return err
		}
		sums := at(now)
		if stats, ok := parseDaySums(values); ok && day != nil {
			sums.Add(*day, &stats)
		}
		return nil
	})
}
