-- Carries out a usual turn by few and small statements, since statements and their columns are most
-- of the cost of a small turn. It leaves any other turn to turn. In a usual turn all jobs to
-- settle are claimed, done whole and processed, and their ids have no parked jobs; no job is to
-- begin; and the due jobs are first tries of ids that are free, with one payload each. Its
-- arguments are those of turn. Its statements wait for no lock.
CREATE FUNCTION {schema}.turn_fast(p_queue text, p_index int, p_owner text, p_token bigint, p_number bigint, p_ttl bigint, p_now bigint,
  p_want int, p_per_job bigint, p_bytes bigint, p_node text,
  p_settle_ids text[], p_settle_tokens bigint[], p_settle_numbers bigint[])
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  c_unusual   CONSTANT int := 1000000000; -- the size of a job that is not usual: no turn takes that many bytes
  c_slow_push CONSTANT bigint := 1000000; -- rescans look for pushes that take longer to commit
  v_settle     int := coalesce(cardinality(p_settle_ids), 0);
  v_shard      int;
  v_renewed    bigint;
  v_from       xid8;
  v_seq        bigint;
  v_open       xid8[];
  v_parked     boolean;
  v_now        bigint;
  v_last       bigint;
  v_ttl        bigint;
  v_expires    bigint;
  v_floor      bigint;
  v_rescan     bigint;
  v_settled    tid[] := '{}';
  v_due        tid[];
  v_locked     tid[];
  v_next       bigint;
  v_size       bigint;
  v_count      int;
  v_reply      {schema}.reply;
BEGIN
  <<usual>>
  BEGIN
    SELECT s.id, s.renewed, s.inbox_from, s.inbox_seq, s.inbox_open, s.parked
    INTO v_shard, v_renewed, v_from, v_seq, v_open, v_parked FROM {schema}.shards s
    WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index AND s.token = p_token AND s.owner = p_owner AND s.usual
      AND (SELECT i.shard FROM {schema}.inbox i WHERE i.shard = s.id AND (i.tx, i.seq) >= (s.inbox_from, s.inbox_seq) LIMIT 1) IS NULL
      AND (s.inbox_open IS NULL OR NOT EXISTS (SELECT FROM unnest(s.inbox_open) o (tx), LATERAL (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx = o.tx LIMIT 1) i))
    FOR UPDATE SKIP LOCKED;
    v_now := {schema}.clock(p_now);
    SELECT t.number, t.ttl, t.expires, t.floor, t.rescan INTO v_last, v_ttl, v_expires, v_floor, v_rescan FROM {schema}.turn_log t
    WHERE t.shard = v_shard AND t.token = p_token AND t.number >= p_number - 1 ORDER BY t.number DESC LIMIT 1;
    EXIT usual WHEN v_last IS DISTINCT FROM p_number - 1 OR {schema}.rescan_due(v_rescan, v_now)
      OR NOT v_now - v_renewed BETWEEN 0 AND p_ttl / 3;
    v_floor := least(v_floor, v_now - c_slow_push);
    IF v_parked AND v_settle > 0 THEN
      EXIT usual WHEN EXISTS (SELECT FROM unnest(p_settle_ids) u (id)
        WHERE (SELECT j.parked FROM {schema}.jobs j WHERE j.shard = v_shard AND j.id = u.id));
    END IF;

    IF v_settle = 1 THEN
      SELECT ARRAY[c.ctid] INTO v_settled FROM {schema}.claimed c
      WHERE c.shard = v_shard AND c.id = p_settle_ids[1] AND c.token = p_settle_tokens[1] AND c.number = p_settle_numbers[1] FOR UPDATE SKIP LOCKED;
    ELSIF v_settle > 1 THEN
      v_settled := ARRAY(SELECT c.at FROM generate_series(1, v_settle) n, LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = v_shard AND c.id = p_settle_ids[n] AND c.token = p_settle_tokens[n] AND c.number = p_settle_numbers[n] FOR UPDATE SKIP LOCKED
      ) c);
    END IF;
    -- An id that this turn settles is free.
    SELECT array_agg(j.at), max(j.perform_at), sum(j.size) INTO v_due, v_next, v_size FROM (
      SELECT j.ctid AS at, j.perform_at, CASE WHEN j.has_more OR j.recoveries > 0 OR j.retry_count >= 0
        OR (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id
          AND (p_settle_ids IS NULL OR c.id <> ALL (p_settle_ids))) IS NOT NULL THEN c_unusual ELSE octet_length(j.data) END AS size
      FROM {schema}.jobs j
      WHERE j.shard = v_shard AND NOT j.parked AND j.perform_at <= v_now AND j.perform_at >= v_floor
      ORDER BY j.perform_at, j.id LIMIT p_want + 1
    ) j;
    EXIT usual WHEN v_size > p_bytes OR v_size >= c_unusual OR cardinality(v_settled) IS DISTINCT FROM v_settle;

    v_count := coalesce(cardinality(v_due), 0);
    IF v_count > p_want THEN
      v_due := v_due[:p_want];
      v_count := p_want;
    ELSE
      v_next := NULL;
    END IF;
    IF v_count + v_settle = 0 THEN
      PERFORM set_config('synchronous_commit', 'off', true); -- nothing was written
      v_reply.header := {schema}.reply_header('ok', p_now => v_now, p_last => v_last,
        p_remaining => {schema}.remaining(v_expires, v_ttl, v_now), p_head => coalesce(v_next, {schema}.head(v_shard, v_floor)),
        p_lease_token => p_token, p_lease_owner => p_owner);
      RETURN NEXT v_reply;
      RETURN;
    END IF;
    IF v_count > 0 THEN
      v_locked := ARRAY(SELECT j.ctid FROM {schema}.jobs j WHERE j.ctid = ANY (v_due) FOR UPDATE SKIP LOCKED);
      -- What transactions have left for these jobs is in the inbox by now, and the next turn merges
      -- it: this turn has locked jobs, so it may not wait for pushes, as a merge does.
      IF EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = v_shard AND (i.tx, i.seq) >= (v_from, v_seq))
        OR v_open IS NOT NULL AND EXISTS (SELECT FROM unnest(v_open) o (tx), LATERAL (SELECT FROM {schema}.inbox i WHERE i.shard = v_shard AND i.tx = o.tx LIMIT 1) i) THEN
        v_locked := ARRAY(SELECT j.ctid FROM {schema}.jobs j WHERE j.ctid = ANY (v_locked) AND (
          SELECT i.shard FROM {schema}.inbox i WHERE i.shard + 0 = j.shard AND i.id = j.id AND i.kind IN ('push', 'put_back') LIMIT 1) IS NULL);
      END IF;
    END IF;
    IF v_settle > 0 THEN
      DELETE FROM {schema}.claimed c WHERE c.ctid = ANY (v_settled);
    END IF;
    IF v_count > 0 THEN
      RETURN QUERY
      WITH taken AS (
        DELETE FROM {schema}.jobs j
        WHERE j.ctid = ANY (v_locked)
          AND (j.shard = v_shard AND j.perform_at <= v_now AND NOT j.has_more AND j.recoveries = 0 AND j.retry_count < 0) IS TRUE -- for no index
        RETURNING j.perform_at, j.first_push, j.score, j.id, j.failures, j.tags, j.slot, j.data, j.meta
      )
      INSERT INTO {schema}.claimed AS c (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, id,
        node, owner, failures, tags, slot, data, meta)
      SELECT p_token, p_number, k.perform_at, k.first_push, v_now, k.score, v_shard, -1, 0, k.id,
        p_node, p_owner, k.failures, k.tags, k.slot, k.data, k.meta FROM taken k
      RETURNING NULL::json, c.*;
      GET DIAGNOSTICS v_count = ROW_COUNT;
    END IF;
    IF v_count < cardinality(v_due) THEN
      v_next := v_now; -- pushes hold some of them locked
    ELSE
      v_floor := least(v_next, v_now - c_slow_push);
    END IF;
    INSERT INTO {schema}.turn_log (shard, token, number, ttl, expires, floor, rescan, fresh, retrying, claimed, dead, processed, failed)
    VALUES (v_shard, p_token, p_number, p_ttl, {schema}.later(v_now, p_ttl), v_floor, v_rescan,
      - v_count, 0, v_count - v_settle, 0, v_settle, 0);
    v_reply.header := {schema}.reply_header('ok', p_now => v_now, p_last => p_number, p_remaining => {schema}.later(v_now, p_ttl) - v_now,
      p_head => coalesce(v_next, {schema}.head(v_shard, v_now - c_slow_push)), p_lease_token => p_token, p_lease_owner => p_owner);
    RETURN NEXT v_reply;
    RETURN;
  END;

  RETURN QUERY SELECT * FROM {schema}.turn(p_queue, p_index, p_owner, p_token, p_number, p_ttl, p_now,
    p_want, p_per_job, p_bytes, p_node, p_settle_ids, p_settle_tokens, p_settle_numbers);
END {$};
