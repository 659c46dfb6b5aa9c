package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// statsSQL returns a row for each shard of a queue in order, all of one instant.
//
//	$1 now, $2 the queue, $3 the indexes of the shards, NULL for all
const statsSQL = `
SELECT q.shards, q.generation, q.index_ids, s.paused, {schema}.clock($1), s.index,
  c.fresh, c.retrying, c.claimed, c.dead, c.processed, c.failed, c.superseded, c.stale, c.repeated,
  {schema}.held(s.id), {schema}.oldest(s.id, l.floor),
  (SELECT count(*) FROM {schema}.quarantine x WHERE x.shard = s.id),
  CASE WHEN l.held THEN l.owner ELSE '' END, l.token, l.expires
FROM {schema}.queues q
JOIN {schema}.shards s ON s.queue = q.name
JOIN {schema}.counts c ON c.shard = s.id
JOIN {schema}.leases l ON l.shard = s.id
WHERE q.name = $2 AND ($3::int[] IS NULL OR s.index = ANY ($3))
ORDER BY s.id`

// Stats implements [ports.Inspector].
func (s *Store) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	all := make([]ports.QueueStats, 0, len(r.Queues))
	for _, name := range r.Queues {
		one, err := s.queueStats(ctx, name, r.Shards)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Store) queueStats(ctx context.Context, name string, indexes []int) (ports.QueueStats, error) {
	q, err := s.queue(ctx, name)
	if err != nil {
		return ports.QueueStats{}, err
	}
	shards, err := storekit.ShardsOf(q, indexes)
	if err != nil {
		return ports.QueueStats{}, err
	}

	var chosen []core.Shard
	if indexes != nil {
		chosen = shards
	}
	if err := s.mergeForLook(ctx, name, chosen); err != nil {
		return ports.QueueStats{}, err
	}
	if err := s.query(ctx, idempotent, noRows,
		`SELECT f FROM {schema}.fold_counts($1) f WHERE `+mayWrite, name, s.inbox(),
	); err != nil {
		return ports.QueueStats{}, err
	}

	stats := ports.QueueStats{Queue: q}
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		stats = ports.QueueStats{Queue: q, Shards: make([]ports.ShardStats, 0, len(shards))}
		return eachRow(rows, func() error {
			shard, err := readStats(rows, &stats)
			stats.Shards = append(stats.Shards, shard)
			stats.Counts = ports.SumCounts(stats.Counts, shard.Counts)
			return err
		})
	}, statsSQL, s.now(), name, shardIndexes(chosen))

	if err == nil && len(stats.Shards) != len(shards) {
		err = storekit.UnknownQueue(name) // forgotten meanwhile
	}
	if err != nil {
		return ports.QueueStats{}, err
	}
	return stats, nil
}

// readStats reads a shard's row, and puts its values of the queue into q.
func readStats(rows pgx.Rows, q *ports.QueueStats) (shard ports.ShardStats, err error) {
	var oldest *int64
	c := &shard.Counts
	shard.Shard.Queue = q.Queue.Name
	err = rows.Scan(
		&q.Queue.Shards, &q.Queue.Generation, &q.Queue.IndexIDs, &q.Queue.Paused, &q.Now, &shard.Shard.Index,
		&c.Fresh, &c.Retrying, &c.Claimed, &c.Dead,
		&c.Processed, &c.Failed, &c.Superseded, &c.Stale, &c.Repeated, &c.Held,
		&oldest, &c.Quarantined, &shard.Owner, &shard.Token, &shard.ExpiresAt)
	c.Oldest = newHead(oldest)
	return shard, err
}

// Recount implements [ports.Operator]. It counts everything in one snapshot, and then reads the
// schedules page by page. No other call waits for that, so its first step is the last.
func (s *Store) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	shard := r.Shard
	if err := s.mergeInboxes(ctx, shard.Queue, []core.Shard{shard}); err != nil {
		return ports.RecountReply{}, err
	}

	var (
		st     status
		reply  ports.RecountReply
		oldest *int64
		before = &reply.Before
		after  = &reply.After
	)
	if r.After != "" {
		return ports.RecountReply{}, storekit.NoSuchStep(&r)
	}

	err := s.queryOne(ctx, ifRolledBack|operated, []any{
		&st,
		&before.Fresh, &before.Retrying, &before.Claimed, &before.Dead,
		&after.Fresh, &after.Retrying, &after.Claimed, &after.Dead,
		&after.Processed, &after.Failed, &after.Superseded, &after.Stale, &after.Repeated, &after.Held,
		&oldest, &after.Quarantined,
	}, recountSQL, textOrNone(shard.Queue), index(shard))
	if err == nil {
		err = st.err(shard)
	}
	if err != nil {
		return ports.RecountReply{}, err
	}

	after.Oldest = newHead(oldest)
	before.Processed, before.Failed, before.Superseded = after.Processed, after.Failed, after.Superseded
	before.Stale, before.Repeated = after.Stale, after.Repeated
	before.Held, before.Oldest, before.Quarantined = after.Held, after.Oldest, after.Quarantined
	reply.Counted = after.Entries()

	moved, err := s.setSchedulesAside(ctx, shard)
	if err != nil {
		return ports.RecountReply{}, err
	}
	after.Quarantined += int64(moved)
	return reply, nil
}

// setSchedulesAside sets the records of a shard's schedules aside that can't be read. It returns
// their number.
func (s *Store) setSchedulesAside(ctx context.Context, shard core.Shard) (moved int, err error) {
	r := ports.SchedulesRequest{Queue: shard.Queue}
	for {
		places, next, err := s.schedulePlaces(ctx, &r, []core.Shard{shard})
		if err != nil || len(places) == 0 {
			return moved, err
		}
		_, records, err := s.readSchedules(ctx, shard.Queue, places)
		if err != nil {
			return moved, err
		}

		n, err := s.setAside(ctx, unreadable(records))
		moved += n
		if r.After = next; err != nil || next == (core.ScheduleKey{}) {
			return moved, err
		}
	}
}

// recountSQL corrects a shard's counts. They are NULL if it does not exist.
//
//	$1 the queue, $2 the shard's index
const recountSQL = `
SELECT status,
  coalesce(before_fresh, 0), coalesce(before_retrying, 0), coalesce(before_claimed, 0), coalesce(before_dead, 0),
  coalesce(fresh, 0), coalesce(retrying, 0), coalesce(claimed, 0), coalesce(dead, 0),
  coalesce(processed, 0), coalesce(failed, 0), coalesce(superseded, 0), coalesce(stale, 0), coalesce(repeated, 0),
  coalesce(held, 0), oldest,
  (SELECT count(*) FROM {schema}.quarantine x WHERE x.shard = {schema}.find_shard($1, $2))
FROM {schema}.recount($1, $2)`
