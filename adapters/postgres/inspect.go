package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// look merges what waits in the inboxes of a queue's shards, so that what is read
// next sees it. Each call takes no more than keeps turns from waiting for long.
func (s *Store) look(ctx context.Context, queue string) error {
	var until *string
	for more := true; more; {
		err := s.query(ctx, always, func(rows pgx.Rows) error { return readOne(rows, &until, &more) },
			`SELECT until::text, more FROM {schema}.look($1, $2::text::xid8)`, queue, until)
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRow has read scan one row after another.
func eachRow(rows pgx.Rows, read func() error) error {
	for rows.Next() {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// statsSQL sums up each shard of a queue in order, all at one instant. The oldest
// job is looked for from the shard's floor on, below which there may be a million
// dead rows.
//
//	$1 now, $2 the queue
const statsSQL = `
SELECT q.shards, q.generation, q.index_ids, s.paused, {schema}.clock($1),
  c.fresh, c.retries, c.claimed, c.dead, c.processed, c.failed,
  (SELECT j.perform_at FROM {schema}.jobs j WHERE j.shard = s.id AND j.perform_at >= l.floor ORDER BY j.perform_at, j.id LIMIT 1),
  CASE WHEN l.held THEN l.owner ELSE '' END, l.token, l.expires
FROM {schema}.queues q
JOIN {schema}.shards s ON s.queue = q.name
JOIN {schema}.counts c ON c.shard = s.id
JOIN {schema}.leases l ON l.shard = s.id
WHERE q.name = $2
ORDER BY s.id`

// Stats implements ports.Inspector.
func (s *Store) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	all := make([]ports.QueueStats, 0, len(queues))
	for _, name := range queues {
		one, err := s.queueStats(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Store) queueStats(ctx context.Context, name string) (ports.QueueStats, error) {
	if err := s.look(ctx, name); err != nil {
		return ports.QueueStats{}, err
	}
	if err := s.query(ctx, always, noRows, `SELECT {schema}.tidy($1)`, name); err != nil {
		return ports.QueueStats{}, err
	}
	var stats ports.QueueStats
	err := s.query(ctx, always, func(rows pgx.Rows) error {
		stats = ports.QueueStats{Queue: ports.Queue{Name: name}}
		return eachRow(rows, func() error {
			shard, err := readStats(rows, &stats)
			shard.Shard = core.Shard{Queue: name, Index: len(stats.Shards)}
			stats.Shards = append(stats.Shards, shard)
			stats.Counts = ports.SumCounts(stats.Counts, shard.Counts)
			return err
		})
	}, statsSQL, s.now(), name)
	if err == nil && len(stats.Shards) == 0 {
		err = unknownQueue.err(core.Shard{Queue: name})
	}
	if err != nil {
		return ports.QueueStats{}, err
	}
	return stats, nil
}

// readStats reads a shard's row, and into q what each of them says of the queue.
func readStats(rows pgx.Rows, q *ports.QueueStats) (shard ports.ShardStats, err error) {
	var oldest *core.Instant
	c := &shard.Counts
	err = rows.Scan(&q.Queue.Shards, &q.Queue.Generation, &q.Queue.IndexIDs, &q.Queue.Paused, &q.Now,
		&c.Fresh, &c.Retrying, &c.Claimed, &c.Dead, &c.Processed, &c.Failed, &oldest,
		&shard.Owner, &shard.Token, &shard.ExpiresAt)
	if oldest != nil {
		c.Oldest = core.Head{Due: *oldest, OK: true}
	}
	return shard, err
}
