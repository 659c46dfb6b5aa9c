package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// patience bounds how long the statement in whose FROM it stands waits for a lock.
const patience = `(SELECT set_config('lock_timeout', '500ms', true) OFFSET 0) patience`

// pushNewSQL is what pushOneSQL does, for an id that has no queued job and a time
// that claims have not gone past: it costs the server less still. perform_at is -1 if
// it did nothing, since the entry is another. 500000 is half a second: a turn at the same
// time may raise the floor, to no later than a second ago.
//
//	$1 the queue, $2 its shards, $3 its generation, $4 now,
//	$5 the shard's index, $6 the id, $7 its PerformAt or -1, $8 else its delay,
//	$9 score, $10 data, $11 meta
const pushNewSQL = `
WITH q AS MATERIALIZED (
  SELECT q.shard, q.now, CASE WHEN $7::bigint >= 0 THEN $7 ELSE {schema}.later(q.now, $8::bigint) END AS due
  FROM (
    SELECT {schema}.first_shard(q.id) + $5::int AS shard, {schema}.clock($4::bigint) AS now FROM ` + patience + `, {schema}.queues q
    WHERE q.name = $1::text AND q.shards = $2::int AND q.generation = $3::bigint OFFSET 0
  ) q
), put AS (
  INSERT INTO {schema}.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta, error)
  SELECT q.shard, $6::text, q.due, q.now, -1, 0, false, $9::double precision, $9, $10::bytea, $11::bytea, '' FROM q
  WHERE q.due >= q.now - 500000 AND q.due >= (SELECT l.floor FROM {schema}.leases l WHERE l.shard = q.shard)
  ON CONFLICT (shard, id) DO NOTHING RETURNING shard, perform_at
), counted AS (
  INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed) SELECT shard, 1, 0, 0, 0, 0 FROM put
)
SELECT q.now, coalesce(put.perform_at, -1) AS perform_at, true AS fresh, false AS added FROM q LEFT JOIN put ON true`

// pushOneSQL is what the function push does, for one entry: as a statement of its
// own it costs the server less. It returns a row with the time, the PerformAt if
// there is a new job or one whose time the rule may have moved, else -1,
// whether the job is new, and whether a queued one did not have the payload; no row if the queue is not as the caller believes. 500000 is
// as in pushNewSQL.
//
//	$1 the queue, $2 its shards, $3 its generation, $4 now, $5 the rule (0 is core.Keep), $6 its limit in µs,
//	$7 the shard's index, $8 the id, $9 its PerformAt or -1, $10 else its delay,
//	$11 score, $12 data, $13 meta
const pushOneSQL = `
WITH q AS MATERIALIZED (
  SELECT {schema}.first_shard(q.id) + $7::int AS shard, {schema}.clock($4::bigint) AS now FROM ` + patience + `, {schema}.queues q
  WHERE q.name = $1::text AND q.shards = $2::int AND q.generation = $3::bigint
), put AS (
  INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta, error)
  SELECT q.shard, $8::text, CASE WHEN $9::bigint >= 0 THEN $9 ELSE {schema}.later(q.now, $10::bigint) END, q.now, -1, 0,
    false, $11::double precision, $11, $12::bytea, $13::bytea, ''
  FROM q
  ON CONFLICT (shard, id) DO UPDATE SET
    prior_retry_count = j.retry_count,
    perform_at = CASE WHEN $5::smallint = 0 OR j.retry_count >= 0 THEN j.perform_at ELSE
      {schema}.apply_push_rule($5, $6::bigint, j.perform_at, excluded.perform_at, least(j.first_push, excluded.first_push)) END,
    first_push = least(j.first_push, excluded.first_push),
    low = least(j.low, excluded.low),
    has_more = j.has_more OR j.data <> excluded.data,
    score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
    meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
  RETURNING shard, CASE WHEN prior_retry_count IS NULL OR $5 <> 0 THEN perform_at END AS due, prior_retry_count,
    has_more AND data IS DISTINCT FROM $12 AS another
), counted AS (
  INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed)
  SELECT shard, 1, 0, 0, 0, 0 FROM put WHERE prior_retry_count IS NULL
), added AS (
  INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
  SELECT shard, $8, sha256($12), $11, $12, $13 FROM put WHERE another
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score
  RETURNING xmax = 0 AS new -- a row that was there has the transaction that locked it
), noted AS (
  INSERT INTO {schema}.inbox (shard, kind, perform_at)
  SELECT put.shard, 'early', put.due FROM put, q
  WHERE put.due < q.now - 500000 OR put.due < (SELECT l.floor FROM {schema}.leases l WHERE l.shard = put.shard)
)
SELECT q.now, coalesce(put.due, -1) AS perform_at, put.prior_retry_count IS NULL AS fresh,
  EXISTS (SELECT FROM added WHERE new) AS added
FROM q LEFT JOIN put ON true`

// pushOne pushes a single entry. It tries first what is cheap for a new job, unless the
// last such push met a queued one.
func (s *Store) pushOne(ctx context.Context, r *ports.PushRequest, statements []*pushStatement) (met ports.PushReply, moved []due, err error) {
	st := statements[0]
	fixed, delay := int64(notFixed), int64(0)
	if st.at != nil {
		fixed, delay = st.at[0], st.delay[0]
	}
	var (
		p     = pushedOne{due: due{index: int(st.index[0]), at: -1}}
		queue = []any{textOrNone(r.Queue), int32(r.Shards), r.Generation, s.now()}
		rule  = []any{int16(r.Rule.Kind), r.Rule.MaxDelay().Microseconds()}
		entry = []any{st.index[0], st.ids[0], fixed, delay, st.scores[0], st.data[0], st.meta[0]}
	)
	if !s.merging.Load() {
		err = s.query(ctx, ifRolledBack, p.read, pushNewSQL, slices.Concat(queue, entry)...)
	}
	if err == nil && p.at < 0 {
		err = s.query(ctx, ifRolledBack, p.read, pushOneSQL, slices.Concat(queue, rule, entry)...)
		s.merging.Store(!p.fresh)
	}
	switch {
	case err != nil:
		return met, nil, err
	case !p.found:
		return met, nil, s.missingLayout(ctx, r)
	case p.at >= 0:
		moved = []due{p.due}
	}
	met.Now = p.now
	switch {
	case p.fresh:
		met.New = 1
	case p.added:
		met.Merged = 1
	}
	return met, moved, nil
}

// pushedOne is the reply to the push of a single entry.
type pushedOne struct {
	found, fresh bool
	// added says that a queued job did not have the payload.
	added bool
	now   core.Instant
	due
}

func (p *pushedOne) read(rows pgx.Rows) error {
	if p.found = rows.Next(); !p.found {
		p.at, p.fresh = -1, true
		return nil
	}
	return rows.Scan(&p.now, &p.at, &p.fresh, &p.added)
}

// missingLayout returns why a queue does not have the layout that a push asks for.
func (s *Store) missingLayout(ctx context.Context, r *ports.PushRequest) error {
	var st status
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error { return readOne(rows, &st) }, `SELECT {schema}.missing_layout($1)`, textOrNone(r.Queue))
	if err != nil {
		return err
	}
	return st.layoutErr(core.Shard{Queue: r.Queue}, layoutOf(r))
}
