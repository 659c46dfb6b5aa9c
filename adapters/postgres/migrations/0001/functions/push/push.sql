-- Pushes entries for distinct ids in order of (shard, id), and more payloads for some of them. An
-- entry's PerformAt is p_at, or for -1 p_delay after now; both arrays are NULL if all are due now.
-- Returns a row without index, with how many jobs are new and how many payloads queued jobs did
-- not have, and one for each shard that has a new job or one whose time the rule may have moved:
-- its index and the earliest such PerformAt. status is ok, unknown_queue, layout_mismatch, or
-- by_rule for a queue with a merge rule: push_by_rule pushes to it.
CREATE FUNCTION {schema}.push(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_index int[], p_ids text[], p_at bigint[], p_delay bigint[], p_scores double precision[], p_data bytea[], p_meta bytea[],
  p_more_index int[], p_more_ids text[], p_more_scores double precision[], p_more_data bytea[], p_more_meta bytea[])
RETURNS TABLE (status text, now bigint, index int, earliest bigint, new bigint, merged bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '500ms' AS {$}
#variable_conflict use_column
DECLARE
  c_keep   CONSTANT smallint := 0;     -- core.Keep
  c_margin CONSTANT bigint := 500000;  -- half a second
  v_first    int;
  v_merge    int;
  v_now      bigint := {schema}.clock(p_now);
  v_more     boolean;
  v_new      bigint;
  v_merged   bigint := 0;
  v_index    int[];
  v_earliest bigint[];
BEGIN
  -- In the snapshot of the call; a change of the layout waits for older transactions.
  SELECT {schema}.first_shard(q.id), q.merge_rule INTO v_first, v_merge FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    RETURN QUERY SELECT {schema}.missing_layout(p_queue), v_now, NULL::int, NULL::bigint, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;
  IF v_merge <> 0 THEN
    RETURN QUERY SELECT 'by_rule', v_now, NULL::int, NULL::bigint, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;
  WITH put AS (
    INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta)
    SELECT v_first + e.index, e.id, CASE WHEN e.at >= 0 THEN e.at ELSE {schema}.later(v_now, coalesce(e.delay, 0)) END, v_now, -1, 0,
      p_more_ids IS NOT NULL AND e.id = ANY (p_more_ids), e.score, e.score, e.data, e.meta
    FROM unnest(p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta) e (index, id, at, delay, score, data, meta)
    ON CONFLICT (shard, id) DO UPDATE SET
      prior_retry_count = j.retry_count,
      perform_at = CASE WHEN p_rule = c_keep OR j.retry_count >= 0 OR j.slot IS NOT NULL THEN j.perform_at
        ELSE {schema}.apply_push_rule(p_rule, p_limit, j.perform_at, excluded.perform_at, least(j.first_push, v_now)) END,
      first_push = least(j.first_push, v_now),
      low = least(j.low, excluded.low),
      has_more = j.has_more OR excluded.has_more OR j.data <> excluded.data,
      score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
      meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
    RETURNING shard, perform_at, prior_retry_count, has_more
  ), touched AS (
    SELECT shard, bool_or(has_more) AS more, count(*) FILTER (WHERE prior_retry_count IS NULL) AS fresh,
      min(perform_at) FILTER (WHERE prior_retry_count IS NULL OR p_rule <> c_keep) AS earliest
    FROM put GROUP BY shard
  ), counted AS (
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed)
    SELECT shard, fresh, 0, 0, 0, 0 FROM touched WHERE fresh > 0
  ), noted AS (
    -- A concurrent turn may raise the floor, to no later than a second ago.
    INSERT INTO {schema}.inbox (shard, kind, perform_at)
    SELECT t.shard, 'early', t.earliest FROM touched t
    WHERE t.earliest < v_now - c_margin OR t.earliest < (SELECT l.floor FROM {schema}.leases l WHERE l.shard = t.shard)
  )
  SELECT bool_or(more), sum(fresh), array_agg(shard - v_first) FILTER (WHERE earliest IS NOT NULL),
    array_agg(earliest) FILTER (WHERE earliest IS NOT NULL)
  INTO v_more, v_new, v_index, v_earliest FROM touched;

  IF v_more THEN
    SELECT {schema}.add_payloads(array_agg(v_first + e.index), array_agg(e.id), array_agg(e.score), array_agg(e.data), array_agg(e.meta))
    INTO v_merged FROM (
      SELECT * FROM unnest(p_index, p_ids, p_scores, p_data, p_meta)
      UNION ALL
      SELECT * FROM unnest(p_more_index, p_more_ids, p_more_scores, p_more_data, p_more_meta)
    ) e (index, id, score, data, meta);
  END IF;
  RETURN QUERY SELECT 'ok', v_now, NULL::int, NULL::bigint, v_new, v_merged
  UNION ALL SELECT 'ok', v_now, u.index, u.earliest, NULL, NULL FROM unnest(v_index, v_earliest) u (index, earliest);
END {$};
