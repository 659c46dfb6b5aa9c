-- What all changes of a shard have in common: its lock, its inbox, its counts, its floor.

-- Records a change of a shard's counts, until a fold.
CREATE FUNCTION {schema}.tally(p_shard int, p_fresh int, p_retries int, p_dead int, p_processed int, p_failed int)
RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF p_fresh <> 0 OR p_retries <> 0 OR p_dead <> 0 OR p_processed <> 0 OR p_failed <> 0 THEN
    INSERT INTO {schema}.tallies (shard, fresh, retries, dead, processed, failed)
    VALUES (p_shard, p_fresh, p_retries, p_dead, p_processed, p_failed);
  END IF;
END {$};

-- Makes claims look from p_at on, if they would look from later. The caller holds the
-- shard's lock.
CREATE FUNCTION {schema}.note_early(p_shard int, p_at bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
BEGIN
  UPDATE {schema}.turns t SET floor = p_at FROM {schema}.shards s
  WHERE s.id = p_shard AND t.shard = p_shard AND t.token = s.token AND t.number > s.last AND t.floor > p_at;
  UPDATE {schema}.shards SET floor = p_at WHERE id = p_shard AND floor > p_at;
END {$};

-- Takes what callers' transactions have left out of a shard's inbox, at most p_limit rows,
-- in the order of their transactions. The caller holds the shard's lock; p_merged is its
-- row's. early is the earliest of the notes.
CREATE FUNCTION {schema}.take_inbox(p_shard int, p_merged xid8, p_limit int,
  OUT jobs {schema}.coming[], OUT dead {schema}.coming[], OUT early bigint, OUT rest boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_count int;
BEGIN
  WITH found AS (
    SELECT i.ctid AS at FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.since(p_merged)
    ORDER BY i.tx, i.seq LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM {schema}.inbox i USING found f WHERE i.ctid = f.at RETURNING i.*
  ), rows AS (
    SELECT kind, tx, seq, perform_at, ROW(kind, rule, rule_limit, perform_at, first_push, score, retry_count, recoveries,
      id, error, data, meta)::{schema}.coming AS row FROM gone
  )
  SELECT count(*), array_agg(row ORDER BY tx, seq) FILTER (WHERE kind IN ('p', 'r')),
    array_agg(row ORDER BY tx, seq) FILTER (WHERE kind = 'd'), min(perform_at) FILTER (WHERE kind = 'e')
  INTO v_count, jobs, dead, early FROM rows;
  rest := v_count = p_limit;
END {$};

-- How many rows of an inbox a turn merges: it must end well before the holder gives it up,
-- at a third of the TTL.
CREATE FUNCTION {schema}.inbox_limit(p_ttl bigint) RETURNS int LANGUAGE sql IMMUTABLE AS {$}
  SELECT greatest(100, least(5000, p_ttl / 600))::int
{$};

-- Merges at most p_limit rows of a shard's inbox. Reports whether there may be more. The
-- caller holds the shard's lock.
CREATE FUNCTION {schema}.merge_inbox(p_shard int, p_merged xid8, p_limit int) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_in   record;
  v_jobs record;
BEGIN
  IF NOT EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.since(p_merged)) THEN
    RETURN false;
  END IF;
  SELECT * INTO v_in FROM {schema}.take_inbox(p_shard, p_merged, p_limit);
  IF v_in.early IS NOT NULL THEN
    PERFORM {schema}.note_early(p_shard, v_in.early);
  END IF;
  IF v_in.jobs IS NOT NULL THEN
    SELECT * INTO v_jobs FROM {schema}.merge(p_shard, v_in.jobs);
    PERFORM {schema}.tally(p_shard, v_jobs.fresh, v_jobs.retries, 0, 0, 0);
    PERFORM {schema}.note_early(p_shard, v_jobs.earliest);
  END IF;
  IF v_in.dead IS NOT NULL THEN
    PERFORM {schema}.tally(p_shard, 0, 0, {schema}.bury(p_shard, v_in.dead), 0, 0);
  END IF;
  RETURN v_in.rest;
END {$};

-- Locks a shard, merges its whole inbox and reads the clock: how all begins that operates on a
-- shard. status is unknownQueue or noSuchShard of errors.go if there is none.
CREATE FUNCTION {schema}.lock_shard(p_queue text, p_index int, p_now bigint,
  OUT status smallint, OUT shard int, OUT now bigint, OUT paused boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_merged xid8;
BEGIN
  SELECT s.id, s.paused, s.merged INTO shard, paused, v_merged FROM {schema}.shards s
  WHERE s.id = {schema}.shard_number(p_queue, p_index) FOR UPDATE;
  IF NOT FOUND THEN
    status := {schema}.no_shard(p_queue);
    now := {schema}.clock(p_now);
    RETURN;
  END IF;
  status := 0;
  now := {schema}.clock(p_now);
  WHILE {schema}.merge_inbox(shard, v_merged, 5000) LOOP
  END LOOP;
END {$};

-- The number of a shard, or NULL if it can't exist.
CREATE FUNCTION {schema}.shard_number(p_queue text, p_index int) RETURNS int LANGUAGE sql STABLE AS {$}
  SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index
{$};

-- Why there is no such shard: unknownQueue or noSuchShard of errors.go.
CREATE FUNCTION {schema}.no_shard(p_queue text) RETURNS smallint LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C") THEN 2 ELSE 1 END::smallint
{$};

-- Merges the inboxes of a queue's shards, so that what is then read is all there is: what
-- transactions before p_until have left, or for NULL any that have ended. To keep no turn
-- waiting it ends after some rows; more then says to call again with the same until.
-- Shards are locked in order, only those whose inbox holds something.
CREATE FUNCTION {schema}.look(p_queue text, p_until xid8, OUT until xid8, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_rows CONSTANT int := 2000;
  v_shard record;
BEGIN
  until := coalesce(p_until, pg_snapshot_xmax(pg_current_snapshot()));
  more := false;
  FOR v_shard IN
    SELECT s.id FROM {schema}.shards s
    WHERE s.queue = p_queue COLLATE "C"
      AND EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx >= {schema}.since(s.merged) AND i.tx < until)
    ORDER BY s.id
  LOOP
    SELECT {schema}.merge_inbox(s.id, s.merged, c_rows) INTO more FROM (
      SELECT s.id, s.merged FROM {schema}.shards s WHERE s.id = v_shard.id FOR UPDATE
    ) s;
    EXIT WHEN more;
  END LOOP;
END {$};

-- Removes changes of counts that are not folded into a shard's row yet, at most 10,000, and
-- gives their sums. Transactions below tallied need not be looked through again: those that
-- are still open may bring older changes than the last found.
CREATE FUNCTION {schema}.take_tallies(p_shard int, p_tallied xid8,
  OUT fresh bigint, OUT retries bigint, OUT claimed bigint, OUT dead bigint, OUT processed bigint, OUT failed bigint, OUT tallied xid8)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_most CONSTANT int := 10000;
BEGIN
  WITH found AS (
    SELECT a.ctid AS at FROM {schema}.tallies a WHERE a.shard = p_shard AND a.tx >= {schema}.since(p_tallied) ORDER BY a.tx LIMIT c_most
  ), gone AS (
    DELETE FROM {schema}.tallies a USING found f WHERE a.ctid = f.at RETURNING a.*
  )
  SELECT coalesce(sum(g.fresh), 0), coalesce(sum(g.retries), 0), coalesce(sum(g.claimed), 0), coalesce(sum(g.dead), 0),
    coalesce(sum(g.processed), 0), coalesce(sum(g.failed), 0),
    -- xid8 has no max before 15.
    CASE WHEN count(*) < c_most OR max(g.tx::text::bigint)::text::xid8 > pg_snapshot_xmin(pg_current_snapshot())
      THEN pg_snapshot_xmin(pg_current_snapshot()) ELSE max(g.tx::text::bigint)::text::xid8 END
  INTO fresh, retries, claimed, dead, processed, failed, tallied FROM gone g;
END {$};

-- Adds what is not folded yet to a shard's row and makes the row the newest word on the
-- lease: p_last, p_ttl, p_expires, p_floor, p_rescan. The caller holds the shard's lock.
-- Of transactions that had ended by then, tallies and inbox are not looked through again.
CREATE FUNCTION {schema}.fold(p_shard int, p_now bigint, p_last bigint, p_ttl bigint, p_expires bigint, p_floor bigint, p_rescan bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_s     {schema}.shards;
  v_turns record;
  v_new   record;
BEGIN
  SELECT * INTO v_s FROM {schema}.shards WHERE id = p_shard;
  WITH gone AS (
    DELETE FROM {schema}.turns t WHERE t.shard = p_shard AND t.token = v_s.token AND t.number > v_s.last RETURNING t.*
  )
  SELECT coalesce(sum(fresh), 0) AS fresh, coalesce(sum(retries), 0) AS retries,
    coalesce(sum(claimed), 0) AS claimed, coalesce(sum(dead), 0) AS dead,
    coalesce(sum(processed), 0) AS processed, coalesce(sum(failed), 0) AS failed
  INTO v_turns FROM gone;
  SELECT * INTO v_new FROM {schema}.take_tallies(p_shard, v_s.tallied);
  UPDATE {schema}.shards SET
    last = p_last, ttl = p_ttl, expires = p_expires, renewed = p_now, floor = p_floor, rescan = p_rescan,
    fresh = v_s.fresh + v_turns.fresh + v_new.fresh,
    retries = v_s.retries + v_turns.retries + v_new.retries,
    claimed = v_s.claimed + v_turns.claimed + v_new.claimed,
    dead = v_s.dead + v_turns.dead + v_new.dead,
    processed = v_s.processed + v_turns.processed + v_new.processed,
    failed = v_s.failed + v_turns.failed + v_new.failed,
    tallied = v_new.tallied,
    merged = CASE WHEN EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.since(v_s.merged)) THEN v_s.merged
      ELSE pg_snapshot_xmin(pg_current_snapshot()) END
  WHERE id = p_shard;
END {$};

-- Whether it is time to look below the floor; also if the clock has stepped back.
CREATE FUNCTION {schema}.overdue(p_rescan bigint, p_now bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS {$}
  SELECT p_now >= p_rescan OR p_rescan > p_now + 60000000
{$};

-- From which PerformAt on to look below the floor: from the first, but beside millions of
-- dead rows only for pushes that took at most a minute, since a look must end long before a
-- lease does.
CREATE FUNCTION {schema}.look_from(p_now bigint) RETURNS bigint LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN pg_stat_get_dead_tuples(t.typrelid) < 1000000 THEN 0 ELSE greatest(0, p_now - 120000000) END
  FROM pg_type t WHERE t.oid = pg_typeof(NULL::{schema}.jobs)::oid
{$};

-- When to look below the floor again, after a look that began at p_began. It takes no more
-- than a twentieth of the time, however many dead rows are there.
CREATE FUNCTION {schema}.next_rescan(p_now bigint, p_began timestamptz) RETURNS bigint LANGUAGE sql VOLATILE AS {$}
  SELECT p_now + least(50000000, greatest(1000000, (20000000 * extract(epoch FROM clock_timestamp() - p_began))::bigint))
{$};

-- When a shard could next give a job, NULL if never: of the jobs due from p_floor on whose
-- ids are not claimed, the first. The caller has switched off what the planner might do else.
CREATE FUNCTION {schema}.head(p_shard int, p_floor bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS {$}
DECLARE
  v_at    bigint;
  v_again int;
BEGIN
  SELECT j.perform_at, j.recoveries INTO v_at, v_again FROM {schema}.jobs j
  WHERE j.shard = p_shard AND j.perform_at >= p_floor
    AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
  ORDER BY j.perform_at, j.id LIMIT 1;
  IF v_at IS NULL OR v_again > 1 AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard)
    OR EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard AND c.recoveries > 1
      AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL)) THEN
    RETURN NULL;
  END IF;
  RETURN v_at;
END {$};
