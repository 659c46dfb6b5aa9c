-- The turn as it is called.

-- A turn whose settlements are all plain and processed, without statistics; the parameters are
-- those of whole_turn, to which it leaves all that is not usual. Usually the jobs to settle
-- are all claimed, and what is due are first tries of free ids with one payload each. That
-- takes few small statements, since what a statement and each of its columns cost is most of
-- a small turn. They wait for nobody.
CREATE FUNCTION {schema}.turn(p_queue text, p_index int, p_owner text, p_token bigint, p_number bigint, p_ttl bigint, p_now bigint,
  p_want int, p_per_job bigint, p_bytes bigint, p_node text, p_lane bigint, p_ids text[], p_tokens bigint[], p_numbers bigint[])
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  c_odd CONSTANT int := 1000000000;
  v_settle  int := coalesce(cardinality(p_ids), 0);
  v_shard   int;
  v_renewed bigint;
  v_merged  xid8;
  v_now     bigint;
  v_last    bigint;
  v_ttl     bigint;
  v_expires bigint;
  v_floor   bigint;
  v_rescan  bigint;
  v_settled tid[] := '{}';
  v_due     tid[];
  v_locked  tid[];
  v_next    bigint;
  v_size    bigint;
  v_count   int;
BEGIN
  <<plain>>
  BEGIN
    SELECT s.id, s.renewed, s.merged INTO v_shard, v_renewed, v_merged FROM {schema}.shards s
    WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index AND s.token = p_token AND s.owner = p_owner AND s.plain
      AND NOT EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx >= s.merged)
    FOR UPDATE SKIP LOCKED;
    v_now := {schema}.clock(p_now);
    SELECT t.number, t.ttl, t.expires, t.floor, t.rescan INTO v_last, v_ttl, v_expires, v_floor, v_rescan FROM {schema}.turns t
    WHERE t.shard = v_shard AND t.token = p_token AND t.number >= p_number - 1 ORDER BY t.number DESC;
    EXIT plain WHEN v_last IS DISTINCT FROM p_number - 1 OR {schema}.overdue(v_rescan, v_now)
      OR NOT v_now - v_renewed BETWEEN 0 AND p_ttl / 3;
    v_floor := least(v_floor, v_now - 1000000);

    IF v_settle = 1 THEN
      SELECT ARRAY[c.ctid] INTO v_settled FROM {schema}.claimed c
      WHERE c.shard = v_shard AND c.id = p_ids[1] AND c.token = p_tokens[1] AND c.number = p_numbers[1] FOR UPDATE SKIP LOCKED;
    ELSIF v_settle > 1 THEN
      v_settled := ARRAY(SELECT c.at FROM generate_series(1, v_settle) n, LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = v_shard AND c.id = p_ids[n] AND c.token = p_tokens[n] AND c.number = p_numbers[n] FOR UPDATE SKIP LOCKED
      ) c);
    END IF;
    -- A job that is not usual counts as c_odd bytes, which no such turn takes. An id that
    -- this turn settles is free.
    SELECT array_agg(j.at), max(j.perform_at), sum(j.size) INTO v_due, v_next, v_size FROM (
      SELECT j.ctid AS at, j.perform_at, CASE WHEN j.more OR j.recoveries > 0 OR j.retry_count >= 0
        OR (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id
          AND (p_ids IS NULL OR c.id <> ALL (p_ids))) IS NOT NULL THEN c_odd ELSE octet_length(j.data) END AS size
      FROM {schema}.jobs j
      WHERE j.shard = v_shard AND j.perform_at <= v_now AND j.perform_at >= v_floor
      ORDER BY j.perform_at, j.id LIMIT p_want + 1
    ) j;
    EXIT plain WHEN v_size > p_bytes OR v_size >= c_odd OR cardinality(v_settled) IS DISTINCT FROM v_settle;

    v_count := coalesce(cardinality(v_due), 0);
    IF v_count > p_want THEN
      v_due := v_due[:p_want];
      v_count := p_want;
    ELSE
      v_next := NULL;
    END IF;
    IF v_count + v_settle = 0 THEN
      PERFORM set_config('synchronous_commit', 'off', true); -- nothing was written
      RETURN NEXT {schema}.header(0, false, v_last, v_now, {schema}.remaining(v_expires, v_ttl, v_now),
        coalesce(v_next, {schema}.head(v_shard, v_floor)), NULL, NULL, p_token, p_owner);
      RETURN;
    END IF;
    IF v_count > 0 THEN
      -- What transactions have left for the jobs that are locked now is in the inbox by now.
      v_locked := ARRAY(SELECT j.ctid FROM {schema}.jobs j WHERE j.ctid = ANY (v_due) FOR UPDATE SKIP LOCKED);
      EXIT plain WHEN EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = v_shard AND i.tx >= v_merged);
    END IF;
    IF v_settle > 0 THEN
      DELETE FROM {schema}.claimed c WHERE c.ctid = ANY (v_settled);
    END IF;
    IF v_count > 0 THEN
      RETURN QUERY
      WITH taken AS (
        DELETE FROM {schema}.jobs j
        WHERE j.ctid = ANY (v_locked) AND j.shard = v_shard AND j.perform_at <= v_now
          AND NOT j.more AND j.recoveries = 0 AND j.retry_count < 0
        RETURNING j.perform_at, j.first_push, j.score, j.id, j.error, j.data, j.meta
      )
      INSERT INTO {schema}.claimed AS c (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, lane, id,
        node, owner, error, data, meta)
      SELECT p_token, p_number, k.perform_at, k.first_push, v_now, k.score, v_shard, -1, 0, p_lane, k.id,
        p_node, p_owner, k.error, k.data, k.meta FROM taken k
      RETURNING 1::smallint, c.id::text, c.token, c.number, c.perform_at, c.first_push, c.retry_count, c.recoveries, c.error, c.score,
        c.data, c.meta, NULL::double precision[], NULL::bytea[], NULL::bytea[], NULL::int[], NULL::int[], 0::bigint, ''::text;
      GET DIAGNOSTICS v_count = ROW_COUNT;
    END IF;
    IF v_count < cardinality(v_due) THEN
      v_next := v_now; -- pushes hold some of them locked
    ELSE
      v_floor := least(v_next, v_now - 1000000);
    END IF;
    INSERT INTO {schema}.turns (shard, token, number, ttl, expires, floor, rescan, fresh, retries, claimed, dead, processed, failed)
    VALUES (v_shard, p_token, p_number, p_ttl, {schema}.later(v_now, p_ttl), v_floor, v_rescan,
      - v_count, 0, v_count - v_settle, 0, v_settle, 0);
    RETURN NEXT {schema}.header(0, false, p_number, v_now, {schema}.later(v_now, p_ttl) - v_now, coalesce(v_next, {schema}.head(v_shard, v_now - 1000000)),
      NULL, NULL, p_token, p_owner);
    RETURN;
  END;

  RETURN QUERY SELECT * FROM {schema}.whole_turn(p_queue, p_index, p_owner, p_token, p_number, p_ttl, p_now,
    p_want, p_per_job, p_bytes, p_node, p_lane, p_ids, p_tokens, p_numbers, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL);
END {$};
