-- Does what push does, for a queue with any merge rule: one entry after another, in the order
-- given, which is that of (shard, id) and then of the call. Each entry has its PerformAt p_at, or
-- for -1 p_delay after now, and one of p_urgent merges by Earliest. p_tags is NULL, or has the tags
-- of each entry. If p_fresh, stale entries are dropped; p_once is NULL, or as in find_repeats with p_keys.
-- superseded is how many entries the rule has dropped at once, and stale and repeated are how many were
-- dropped before.
CREATE FUNCTION {schema}.push_by_rule(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_index int[], p_ids text[], p_at bigint[], p_delay bigint[], p_scores double precision[], p_data bytea[], p_meta bytea[],
  p_urgent boolean[], p_tags text[] DEFAULT NULL,
  p_fresh boolean DEFAULT false, p_keys uuid[] DEFAULT NULL, p_once bigint[] DEFAULT NULL)
RETURNS TABLE (status text, now bigint, index int, earliest bigint, new bigint, merged bigint, superseded bigint, stale bigint, repeated bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '500ms' AS {$}
#variable_conflict use_column
DECLARE
  c_earliest CONSTANT smallint := 1;   -- core.Earliest
  c_margin CONSTANT bigint := 500000;  -- half a second
  v_first    int;
  v_rule     int;
  v_now      bigint := {schema}.clock(p_now);
  e          record;
  a          {schema}.inbox;
  v_met      record;
  v_shard    int;
  v_before   int; -- how many entries come before those of the shard
  v_dropped  int[]; -- of the shard, as drop_entries returns it
  v_drops    boolean := p_fresh OR p_once IS NOT NULL;
  v_stale    bigint := 0;
  v_repeated bigint := 0;
  v_due      bigint; -- the earliest of the shard
  v_fresh    int := 0;
  v_lowest   int := 0; -- payloads that the rule has dropped
  v_new      bigint := 0;
  v_merged   bigint := 0;
  v_own      bigint := 0; -- entries that were dropped at once
BEGIN
  -- In the snapshot of the call; a change of the layout waits for older transactions.
  SELECT {schema}.first_shard(q.id), q.merge_rule INTO v_first, v_rule FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    RETURN QUERY SELECT {schema}.missing_layout(p_queue), v_now, NULL::int, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;

  FOR e IN
    SELECT u.*, v_first + u.index AS shard, lead(u.index) OVER w IS DISTINCT FROM u.index AS last
    FROM unnest(p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta, p_urgent, p_tags)
      WITH ORDINALITY u (index, id, at, delay, score, data, meta, urgent, tags, nth)
    WINDOW w AS (ORDER BY u.nth) ORDER BY u.nth
  LOOP
    -- A shard's entries are decided before its jobs are locked, and after those of the shards before it.
    IF v_drops AND v_shard IS DISTINCT FROM e.shard THEN
      v_shard := e.shard;
      v_before := e.nth - 1;
      v_dropped := (
        SELECT {schema}.drop_entries(e.shard, v_now, p_ids[e.nth:s.last], CASE WHEN p_fresh THEN p_scores[e.nth:s.last] END,
          p_keys[e.nth:s.last], p_once[e.nth:s.last])
        FROM (SELECT v_before + count(*)::int AS last FROM unnest(p_index) u (index) WHERE u.index = e.index) s
      );
    END IF;

    IF v_drops AND v_dropped[e.nth - v_before] > 0 THEN
      v_stale := v_stale + (v_dropped[e.nth - v_before] = 1)::int;
      v_repeated := v_repeated + (v_dropped[e.nth - v_before] = 2)::int;
    ELSE
      a := {schema}.new_arrival(e.shard, 'push', e.id);
      a.rule := CASE WHEN e.urgent THEN c_earliest ELSE p_rule END;
      a.rule_limit := p_limit;
      a.perform_at := CASE WHEN e.at >= 0 THEN e.at ELSE {schema}.later(v_now, coalesce(e.delay, 0)) END;
      a.first_push := v_now;
      a.tags := coalesce(e.tags, '');
      a.score := e.score;
      a.data := e.data;
      a.meta := e.meta;
      v_met := {schema}.merge_arrival(e.shard, v_rule, a);
      v_fresh := v_fresh + v_met.fresh;
      v_lowest := v_lowest + v_met.superseded;
      v_merged := v_merged + v_met.added::int;
      v_own := v_own + (v_met.superseded > 0 AND NOT v_met.added)::int;

      -- A job that stays where it is needs no note: pushes of an id that waits would each leave one.
      IF v_met.is_new OR v_met.earlier THEN
        v_due := least(v_due, v_met.due);
      END IF;
    END IF;

    CONTINUE WHEN NOT e.last;
    PERFORM {schema}.change_counts(e.shard, v_fresh, 0, 0);
    PERFORM {schema}.count_superseded(e.shard, v_lowest);
    -- A concurrent turn may raise the floor, to no later than a second ago.
    INSERT INTO {schema}.inbox (shard, kind, perform_at)
    SELECT e.shard, 'early', v_due
    WHERE v_due < v_now - c_margin OR v_due < (SELECT l.floor FROM {schema}.leases l WHERE l.shard = e.shard);
    IF v_due IS NOT NULL THEN
      RETURN QUERY SELECT 'ok', v_now, e.shard - v_first, v_due, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint;
    END IF;

    v_new := v_new + v_fresh;
    v_fresh := 0; v_lowest := 0; v_due := NULL;
  END LOOP;

  RETURN QUERY SELECT 'ok', v_now, NULL::int, NULL::bigint, v_new, v_merged, v_own, v_stale, v_repeated;
END {$};
