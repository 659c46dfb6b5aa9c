-- Operators' steps on one shard. Each holds the shard's lock from its start, so that only
-- pushes run beside it.

-- What a step did: a status of errors.go, the clock, how much was handled, whether more of
-- its kind is left, and the smallest PerformAt of what it made due, if anything.
CREATE TYPE {schema}.step AS (
  status   smallint,
  now      bigint,
  handled  int,
  more     boolean,
  earliest bigint
);

-- Makes queued jobs due: those named, or for NULL the last by time, at most so many.
CREATE FUNCTION {schema}.step_expedite(p_queue text, p_index int, p_now bigint, p_ids text[], p_limit int)
RETURNS {schema}.step LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  l record;
  r {schema}.step;
BEGIN
  SELECT * INTO l FROM {schema}.lock_shard(p_queue, p_index, p_now);
  r := ROW(l.status, l.now, 0, false, NULL);
  IF l.status <> 0 THEN
    RETURN r;
  END IF;
  -- The ids alone choose the rows, or the planner may walk through all that are not due.
  WITH locked AS MATERIALIZED (
    SELECT j.id, j.perform_at FROM {schema}.jobs j
    WHERE j.shard = l.shard AND j.id = ANY (coalesce(p_ids, ARRAY(
      SELECT j.id FROM {schema}.jobs j
      WHERE j.shard = l.shard AND j.perform_at > l.now
      ORDER BY j.perform_at DESC, j.id DESC LIMIT p_limit)))
    ORDER BY j.id FOR UPDATE
  )
  UPDATE {schema}.jobs j SET perform_at = l.now
  WHERE j.shard = l.shard AND j.id = ANY (ARRAY(SELECT id FROM locked WHERE perform_at > l.now));
  GET DIAGNOSTICS r.handled = ROW_COUNT;
  r.more := p_ids IS NULL AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = l.shard AND j.perform_at > l.now);
  IF r.handled > 0 THEN
    r.earliest := l.now;
    PERFORM {schema}.note_early(l.shard, l.now);
  END IF;
  RETURN r;
END {$};

-- Takes jobs out of the queue: those named, or for NULL the first by time of those with a
-- failure, at most so many. They are buried, with p_error if they have none, or with a
-- NULL p_error deleted.
CREATE FUNCTION {schema}.step_remove(p_queue text, p_index int, p_now bigint, p_ids text[], p_limit int, p_error text)
RETURNS {schema}.step LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  l record;
  r {schema}.step;
  v_taken {schema}.coming[];
  v_fresh int;
  v_dead  int := 0;
BEGIN
  SELECT * INTO l FROM {schema}.lock_shard(p_queue, p_index, p_now);
  r := ROW(l.status, l.now, 0, false, NULL);
  IF l.status <> 0 THEN
    RETURN r;
  END IF;
  SELECT count(DISTINCT id), count(DISTINCT id) FILTER (WHERE retry_count < 0),
    array_agg(ROW(kind, rule, rule_limit, l.now, first_push, score, retry_count, recoveries, id,
      coalesce(nullif(error, ''), p_error), data, meta)::{schema}.coming)
  INTO r.handled, v_fresh, v_taken
  FROM {schema}.take_jobs(l.shard, coalesce(p_ids, ARRAY(
    SELECT j.id FROM {schema}.jobs j
    WHERE j.shard = l.shard AND j.retry_count >= 0
    ORDER BY j.perform_at, j.id LIMIT p_limit)));
  r.more := p_ids IS NULL AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = l.shard AND j.retry_count >= 0);
  IF r.handled = 0 THEN
    RETURN r;
  END IF;
  IF p_error IS NOT NULL THEN
    v_dead := {schema}.bury(l.shard, v_taken);
  END IF;
  PERFORM {schema}.tally(l.shard, -v_fresh, v_fresh - r.handled, v_dead, 0, 0);
  RETURN r;
END {$};

-- Marks claimed jobs that are to end. One that a caller's transaction is settling is left
-- to it.
CREATE FUNCTION {schema}.step_cancel(p_queue text, p_index int, p_now bigint, p_ids text[], p_drop boolean)
RETURNS {schema}.step LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  l record;
  r {schema}.step;
BEGIN
  SELECT * INTO l FROM {schema}.lock_shard(p_queue, p_index, p_now);
  r := ROW(l.status, l.now, 0, false, NULL);
  IF l.status <> 0 THEN
    RETURN r;
  END IF;
  WITH locked AS MATERIALIZED (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = l.shard AND c.id = ANY (p_ids) AND c.cancel_drop IS DISTINCT FROM p_drop
    ORDER BY c.id FOR UPDATE SKIP LOCKED
  )
  UPDATE {schema}.claimed c SET cancel_drop = p_drop WHERE c.shard = l.shard AND c.id = ANY (ARRAY(SELECT id FROM locked));
  GET DIAGNOSTICS r.handled = ROW_COUNT;
  UPDATE {schema}.shards s SET special = true WHERE s.id = l.shard AND r.handled > 0;
  RETURN r;
END {$};

-- Takes dead payloads out of the morgue: whole entries, and beside them single payloads of
-- (p_ids, p_data); or for NULL whole entries that changed before p_before, the first by
-- time, at most so many. They are revived, or else purged.
CREATE FUNCTION {schema}.step_exhume(p_queue text, p_index int, p_now bigint, p_whole text[], p_ids text[], p_data bytea[],
  p_before bigint, p_limit int, p_revive boolean)
RETURNS {schema}.step LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  l record;
  r {schema}.step;
  v_taken  {schema}.coming[];
  v_ids    text[];
  v_gone   int;
  v_merged record;
BEGIN
  SELECT * INTO l FROM {schema}.lock_shard(p_queue, p_index, p_now);
  r := ROW(l.status, l.now, 0, false, NULL);
  IF l.status <> 0 THEN
    RETURN r;
  END IF;
  WITH whole AS (
    DELETE FROM {schema}.dead_payloads p
    WHERE p.shard = l.shard AND p.id = ANY (coalesce(p_whole, ARRAY(
      SELECT d.id FROM {schema}.dead d
      WHERE d.shard = l.shard AND d.changed_at < p_before
      ORDER BY d.changed_at, d.id LIMIT p_limit)))
    RETURNING p.*
  ), parts AS (
    DELETE FROM {schema}.dead_payloads p USING unnest(p_ids, p_data) m (id, data)
    WHERE p.shard = l.shard AND p.id = m.id AND p.digest = sha256(m.data)
    RETURNING p.*
  )
  SELECT array_agg(DISTINCT t.id), array_agg(ROW('v', 0, 0, l.now, l.now, t.score, -1, 0, t.id, '', t.data, t.meta)::{schema}.coming)
  INTO v_ids, v_taken
  FROM (SELECT * FROM whole UNION ALL SELECT * FROM parts) t;
  r.more := p_whole IS NULL AND EXISTS (
    SELECT FROM {schema}.dead d WHERE d.shard = l.shard AND d.changed_at < p_before AND d.id <> ALL (coalesce(v_ids, '{}')));
  IF v_ids IS NULL THEN
    RETURN r;
  END IF;
  r.handled := cardinality(v_ids);
  DELETE FROM {schema}.dead d
  WHERE d.shard = l.shard AND d.id = ANY (v_ids)
    AND NOT EXISTS (SELECT FROM {schema}.dead_payloads p WHERE p.shard = l.shard AND p.id = d.id);
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  IF p_revive THEN
    SELECT * INTO v_merged FROM {schema}.merge(l.shard, v_taken);
    r.earliest := v_merged.earliest;
    PERFORM {schema}.note_early(l.shard, r.earliest);
    PERFORM {schema}.tally(l.shard, v_merged.fresh, v_merged.retries, -v_gone, 0, 0);
  ELSE
    PERFORM {schema}.tally(l.shard, 0, 0, -v_gone, 0, 0);
  END IF;
  RETURN r;
END {$};

-- Replaces a dead payload's bytes. Where the entry has the new ones already, the smaller
-- score stays.
CREATE FUNCTION {schema}.step_edit(p_queue text, p_index int, p_now bigint, p_id text, p_old bytea, p_new bytea)
RETURNS {schema}.step LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  l record;
  r {schema}.step;
  v_old record;
BEGIN
  SELECT * INTO l FROM {schema}.lock_shard(p_queue, p_index, p_now);
  r := ROW(l.status, l.now, 0, false, NULL);
  IF l.status <> 0 THEN
    RETURN r;
  END IF;
  DELETE FROM {schema}.dead_payloads p
  WHERE p.shard = l.shard AND p.id = p_id AND p.digest = sha256(p_old)
  RETURNING p.score, p.meta INTO v_old;
  IF NOT FOUND THEN
    RETURN r;
  END IF;
  INSERT INTO {schema}.dead_payloads AS p (shard, id, digest, score, data, meta)
  VALUES (l.shard, p_id, sha256(p_new), v_old.score, p_new, v_old.meta)
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score;
  UPDATE {schema}.dead d SET changed_at = l.now WHERE d.shard = l.shard AND d.id = p_id;
  r.handled := 1;
  RETURN r;
END {$};
