package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// standingSQL reads the values that decide when the queued job of an id runs, as in
// ports.Standing. It reads no more of the jobs ahead than it counts.
//
//	$1 the queue, $2 the shard's index, $3 the id, $4 now, $5 the most to count
const standingSQL = `
WITH s AS MATERIALIZED (
  SELECT s.id, s.paused, l.held, l.owner, l.token, l.expires, {schema}.clock($4) AS now
  FROM {schema}.queues q
  JOIN {schema}.shards s ON s.id = {schema}.first_shard(q.id) + $2::int
  JOIN {schema}.leases l ON l.shard = s.id
  WHERE q.name = $1
), j AS MATERIALIZED (
  SELECT j.perform_at, j.id FROM {schema}.jobs j JOIN s ON j.shard = s.id
  WHERE j.id = $3 AND j.perform_at <= s.now
    AND NOT EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id)
)
SELECT s.now, s.paused, CASE WHEN s.held THEN s.owner ELSE '' END, CASE WHEN s.held THEN s.token ELSE 0 END,
  CASE WHEN s.held THEN s.expires ELSE 0 END,
  (SELECT count(*) FROM (SELECT FROM {schema}.claimed c WHERE c.shard = s.id LIMIT $5::int) c),
  (SELECT count(*) FROM (
    SELECT FROM {schema}.jobs a
    WHERE a.shard = s.id AND NOT a.parked AND (a.perform_at, a.id) < (j.perform_at, j.id)
      AND NOT EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = a.shard AND c.id = a.id)
    ORDER BY a.perform_at, a.id LIMIT $5) a),
  CASE WHEN j.id IS NOT NULL THEN coalesce(
    (SELECT c.id FROM {schema}.claimed c WHERE c.shard = s.id AND c.recoveries > 1
       AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL) ORDER BY c.id LIMIT 1),
    (SELECT f.id FROM (
       SELECT a.id, a.recoveries FROM {schema}.jobs a
       WHERE a.shard = s.id AND NOT a.parked
         AND NOT EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = a.shard AND c.id = a.id)
       ORDER BY a.perform_at, a.id LIMIT 1) f
     WHERE f.recoveries > 1 AND f.id <> j.id), '') ELSE '' END
FROM s LEFT JOIN j ON true`

// standing returns the values that decide when the queued job of an id runs.
func (s *Store) standing(ctx context.Context, shard core.Shard, id string) (st ports.Standing, err error) {
	err = s.queryOne(ctx, idempotent, []any{
		&st.Now, &st.Paused, &st.Owner, &st.Token, &st.ExpiresAt, &st.Claimed, &st.Ahead, &st.Alone,
	}, standingSQL, shard.Queue, shard.Index, id, s.now(), ports.MaxAhead)
	return st, err
}
