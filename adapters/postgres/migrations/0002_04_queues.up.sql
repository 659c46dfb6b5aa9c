-- Operators' actions on whole queues and on counts.

-- Removes a queue that holds nothing and that nobody works. status is unknownQueue, notEmpty
-- or leaseHeld of errors.go; index, owner and remaining say where. A push holds a lock on the
-- table of queues until its transaction ends, so that none can be under way to a queue that
-- goes: one in a caller's transaction that stays open makes this fail.
CREATE FUNCTION {schema}.forget(p_queue text, p_now bigint,
  OUT status smallint, OUT index int, OUT owner text, OUT remaining bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '200ms' AS {$}
DECLARE
  v_from int;
  v_to   int;
BEGIN
  LOCK TABLE {schema}.queues IN ACCESS EXCLUSIVE MODE;
  SELECT q.id * 16384, q.id * 16384 + 16383 INTO v_from, v_to FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    status := 1;
    RETURN;
  END IF;
  PERFORM FROM {schema}.shards s WHERE s.id BETWEEN v_from AND v_to ORDER BY s.id FOR UPDATE;
  SELECT 8, s.index INTO status, index FROM {schema}.shards s
  WHERE s.id BETWEEN v_from AND v_to AND (
    EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.dead d WHERE d.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.kind <> 'e'))
  ORDER BY s.id LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;
  SELECT 7, s.index, l.owner, {schema}.remaining(l.expires, l.ttl, {schema}.clock(p_now)) INTO status, index, owner, remaining
  FROM {schema}.shards s JOIN {schema}.leases l ON l.shard = s.id
  WHERE s.id BETWEEN v_from AND v_to AND l.held AND {schema}.remaining(l.expires, l.ttl, {schema}.clock(p_now)) > 0
  ORDER BY s.id LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;
  DELETE FROM {schema}.turns t WHERE t.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.tallies t WHERE t.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.inbox i WHERE i.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.minutes m WHERE m.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.shards s WHERE s.id BETWEEN v_from AND v_to;
  DELETE FROM {schema}.queues q WHERE q.id = v_from / 16384;
  status := 0;
END {$};

-- Counts what a shard holds, and corrects its counts by the difference. The shard goes on
-- meanwhile: whoever changes something changes the counts in the same transaction, so that
-- both fit in one snapshot, however much is under way. said are the counts as they were,
-- there what was counted: fresh, retries, claimed, dead.
CREATE FUNCTION {schema}.recount(p_queue text, p_index int,
  OUT status smallint, OUT said bigint[], OUT there bigint[], OUT processed bigint, OUT failed bigint, OUT oldest bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off AS {$}
DECLARE
  v_shard int := {schema}.shard_number(p_queue, p_index);
BEGIN
  IF v_shard IS NULL THEN
    status := {schema}.no_shard(p_queue);
    RETURN;
  END IF;
  status := 0;
  -- One at a time, or two would correct the same twice.
  PERFORM pg_advisory_xact_lock(s.tableoid::bigint << 31 | v_shard) FROM {schema}.shards s WHERE s.id = v_shard;
  WITH said AS (
    SELECT c.* FROM {schema}.counts c WHERE c.shard = v_shard
  ), there AS (
    SELECT count(*) FILTER (WHERE j.retry_count < 0) AS fresh, count(*) FILTER (WHERE j.retry_count >= 0) AS retries,
      (SELECT count(*) FROM {schema}.claimed c WHERE c.shard = v_shard) AS claimed,
      (SELECT count(*) FROM {schema}.dead d WHERE d.shard = v_shard) AS dead
    FROM {schema}.jobs j WHERE j.shard = v_shard
  ), corrected AS (
    INSERT INTO {schema}.tallies (shard, fresh, retries, claimed, dead, processed, failed)
    SELECT v_shard, t.fresh - s.fresh, t.retries - s.retries, t.claimed - s.claimed, t.dead - s.dead, 0, 0 FROM said s, there t
    WHERE (t.fresh, t.retries, t.claimed, t.dead) <> (s.fresh, s.retries, s.claimed, s.dead)
  )
  SELECT ARRAY[s.fresh, s.retries, s.claimed, s.dead], ARRAY[t.fresh, t.retries, t.claimed, t.dead], s.processed, s.failed,
    (SELECT j.perform_at FROM {schema}.jobs j JOIN {schema}.leases l ON l.shard = j.shard
     WHERE j.shard = v_shard AND j.perform_at >= l.floor ORDER BY j.perform_at, j.id LIMIT 1)
  INTO said, there, processed, failed, oldest FROM said s, there t;
END {$};
