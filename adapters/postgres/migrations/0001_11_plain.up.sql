-- The turn as it is called.

-- A turn, as ports.Consumer says; the settlements are as in settle_claimed, the statistics
-- as in add_minute. p_want is within 0 and core.MaxTurnJobs. Most turns find nothing special:
-- their settlements are all claimed and plain, and what is due has one payload each and a
-- free id. Those take few statements, and what a statement costs is most of a small turn:
-- that is why they have no record variable, few aggregates and no CTE that is not needed.
CREATE FUNCTION {schema}.turn(p_queue text, p_index int, p_owner text, p_token bigint, p_number bigint, p_ttl bigint, p_now bigint,
  p_want int, p_per_job bigint, p_bytes bigint, p_node text, p_lane bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_flags smallint[],
  p_rest smallint[], p_same_time boolean[], p_delays bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_bury_errors text[],
  x_place int[], x_position int[], x_disposition smallint[],
  p_processed bigint, p_failed bigint, p_wait bigint[], p_run bigint[])
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_odd CONSTANT int := 1000000000;
  v_shard   int;
  v_plain   boolean;
  v_merged  xid8;
  v_now     bigint;
  v_floor   bigint;
  v_rescan  bigint;
  v_settled tid[];
  v_due     tid[];
  v_next    bigint;
  v_size    bigint;
  v_retry   int;
  v_count   int := 0;
  v_retries int := 0;
  v_missed  boolean := false;
BEGIN
  IF p_ttl < 5000000 THEN
    PERFORM {schema}.limit_waits(p_ttl);
  END IF;
  SELECT s.id, s.held AND s.owner = p_owner AND s.token = p_token AND NOT s.paused AND NOT s.orphans AND NOT s.special
    AND {schema}.clock(p_now) - s.renewed BETWEEN 0 AND p_ttl / 3, s.merged
  INTO v_shard, v_plain, v_merged FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index FOR UPDATE;
  IF v_shard IS NULL THEN
    RETURN NEXT {schema}.header({schema}.no_shard(p_queue), false, 0, 0, 0, NULL, NULL, NULL, 0, '');
    RETURN;
  END IF;
  v_now := {schema}.clock(p_now);

  -- A job that is not plain counts as c_odd bytes, which no plain turn takes. An id that
  -- this turn settles is free.
  IF v_plain AND p_flags IS NULL AND p_rest IS NULL AND p_wait IS NULL THEN
    SELECT l.floor, l.rescan, d.at[:p_want], CASE WHEN cardinality(d.at) > p_want THEN d.last END, coalesce(d.size, 0), d.retry,
      ARRAY(SELECT c.at FROM generate_series(1, cardinality(p_ids)) n, LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = v_shard AND c.id = p_ids[n] AND c.token = p_tokens[n] AND c.number = p_numbers[n] FOR UPDATE SKIP LOCKED
      ) c)
    INTO v_floor, v_rescan, v_due, v_next, v_size, v_retry, v_settled
    FROM (
      SELECT x.number, x.floor, x.rescan FROM {schema}.turns x
      WHERE x.shard = v_shard AND x.token = p_token AND x.number >= p_number - 1 AND x.number <= p_number ORDER BY x.number DESC LIMIT 1
    ) l, LATERAL (
      SELECT array_agg(j.at) AS at, max(j.perform_at) AS last, sum(j.size) AS size, max(j.retry_count) AS retry FROM (
        SELECT j.ctid AS at, j.perform_at, j.retry_count, CASE WHEN j.more OR j.recoveries > 0
          OR (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id
            AND (p_ids IS NULL OR c.id <> ALL (p_ids))) IS NOT NULL THEN c_odd ELSE octet_length(j.data) END AS size
        FROM {schema}.jobs j
        WHERE j.shard = v_shard AND j.perform_at <= v_now AND j.perform_at >= least(l.floor, v_now - 1000000)
        ORDER BY j.perform_at, j.id LIMIT p_want + 1
      ) j
    ) d
    WHERE l.number = p_number - 1 AND NOT {schema}.overdue(l.rescan, v_now)
      AND NOT EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = v_shard AND i.tx >= v_merged);
  END IF;
  -- All are NULL if nothing was looked for.
  IF (v_size <= p_bytes AND v_size < c_odd AND (p_ids IS NOT NULL OR v_due <> '{}')
    AND cardinality(v_settled) = coalesce(cardinality(p_ids), 0)) IS NOT TRUE THEN
    RETURN QUERY SELECT * FROM {schema}.whole_turn(v_shard, v_now, p_owner, p_token, p_number, p_ttl,
      p_want, p_per_job, p_bytes, p_node, p_lane, p_ids, p_tokens, p_numbers, p_flags,
      p_rest, p_same_time, p_delays, p_retries, p_recoveries, p_errors, p_bury_errors, x_place, x_position, x_disposition,
      p_processed, p_failed, p_wait, p_run);
    RETURN;
  END IF;

  IF p_ids IS NOT NULL THEN
    DELETE FROM {schema}.claimed c WHERE c.ctid = ANY (v_settled);
  END IF;
  IF v_due <> '{}' THEN
    RETURN QUERY
    WITH taken AS (
      DELETE FROM {schema}.jobs j WHERE j.ctid = ANY (ARRAY(
        SELECT f.ctid FROM {schema}.jobs f WHERE f.ctid = ANY (v_due) FOR UPDATE SKIP LOCKED
      )) RETURNING j.perform_at, j.first_push, j.score, j.retry_count, j.id, j.error, j.data, j.meta
    )
    INSERT INTO {schema}.claimed AS c (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, lane, id,
      node, owner, error, data, meta)
    SELECT p_token, p_number, k.perform_at, k.first_push, v_now, k.score, v_shard, k.retry_count, 0, p_lane, k.id,
      p_node, p_owner, k.error, k.data, k.meta FROM taken k
    RETURNING 1::smallint, c.id::text, c.token, c.number, c.perform_at, c.first_push, c.retry_count, c.recoveries, c.error, c.score,
      c.data, c.meta, NULL::double precision[], NULL::bytea[], NULL::bytea[], NULL::int[], NULL::int[], 0::bigint, ''::text;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_missed := v_count < cardinality(v_due); -- pushes hold some of them locked
    IF v_retry >= 0 THEN
      SELECT count(*) INTO v_retries FROM {schema}.claimed c
      WHERE c.shard = v_shard AND c.token = p_token AND c.number = p_number AND c.retry_count >= 0;
    END IF;
  END IF;
  v_floor := CASE WHEN v_missed THEN v_floor ELSE v_next END;
  INSERT INTO {schema}.turns (shard, token, number, ttl, expires, floor, rescan, fresh, retries, claimed, dead, processed, failed)
  VALUES (v_shard, p_token, p_number, p_ttl, {schema}.later(v_now, p_ttl), least(v_floor, v_now - 1000000), v_rescan,
    v_retries - v_count, - v_retries, v_count - cardinality(v_settled), 0, cardinality(v_settled), 0);
  RETURN NEXT {schema}.header(0, false, p_number, v_now, p_ttl,
    CASE WHEN v_missed THEN v_now WHEN v_next IS NOT NULL THEN v_next ELSE {schema}.head(v_shard, v_now - 1000000) END,
    NULL, NULL, p_token, p_owner);
END {$};
