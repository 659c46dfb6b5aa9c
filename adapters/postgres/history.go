package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// historySQL lists what each shard of a queue counted in a minute, and at least
// one row if the queue is known.
//
//	$1 the queue, $2 from, $3 to
const historySQL = `
SELECT m.at, m.processed, m.failed, m.wait, m.run
FROM {schema}.shards s
LEFT JOIN {schema}.minute_stats m ON m.shard = s.id AND m.at >= $2 AND m.at < $3
WHERE s.queue = $1
ORDER BY m.at`

// History implements [ports.Inspector].
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	to := int64(r.To)
	if to == 0 {
		to = math.MaxInt64
	}
	var minutes []ports.MinuteStats
	var known bool
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		minutes, known = nil, false
		return eachRow(rows, func() (err error) {
			known = true
			minutes, err = addMinute(minutes, rows)
			return err
		})
	}, historySQL, r.Queue, int64(r.From), to)
	if err == nil && !known {
		err = storekit.UnknownQueue(r.Queue)
	}
	if err != nil {
		return nil, err
	}
	return minutes, nil
}

// addMinute adds a row to the list, or to the minute that the list ends with.
func addMinute(minutes []ports.MinuteStats, rows pgx.Rows) ([]ports.MinuteStats, error) {
	var at *core.Instant
	var processed, failed *int64
	var wait, run []int64
	if err := rows.Scan(&at, &processed, &failed, &wait, &run); err != nil || at == nil {
		return minutes, err
	}
	if len(minutes) == 0 || minutes[len(minutes)-1].At != *at {
		minutes = append(minutes, ports.MinuteStats{At: *at})
	}
	stats := &minutes[len(minutes)-1].Stats
	stats.Processed += uint64(*processed)
	stats.Failed += uint64(*failed)
	if err := addBuckets(&stats.Wait, wait); err != nil {
		return nil, err
	}
	return minutes, addBuckets(&stats.Run, run)
}

func addBuckets(h *core.Histogram, counts []int64) error {
	if len(counts) > len(h) {
		return fmt.Errorf("a histogram of %d buckets, at most %d", len(counts), len(h))
	}
	for i, n := range counts {
		h[i] += uint32(n)
	}
	return nil
}
