-- Declaring queues and pushing.

-- Makes sure that a queue exists. Gives what it is, which the caller compares.
CREATE FUNCTION {schema}.declare(p_queue text, p_shards int, p_index_ids boolean,
  OUT shards int, OUT generation bigint, OUT index_ids boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_id int;
BEGIN
  FOR i IN 1..2 LOOP
    SELECT q.shards, q.generation, q.index_ids INTO shards, generation, index_ids FROM {schema}.queues q
    WHERE q.name = p_queue COLLATE "C";
    EXIT WHEN FOUND OR i = 2;
    LOCK TABLE {schema}.queues IN SHARE ROW EXCLUSIVE MODE;
    CONTINUE WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C");
    INSERT INTO {schema}.queues AS q (name, shards, generation, index_ids) VALUES (p_queue, p_shards, 1, p_index_ids)
    RETURNING q.id INTO v_id;
    INSERT INTO {schema}.shards (id, queue, index)
    SELECT v_id * 16384 + n, p_queue, n FROM generate_series(0, p_shards - 1) n;
  END LOOP;
END {$};

-- Pushes entries for distinct ids in order of (shard, id), and more payloads for some of
-- them (x_). One whose PerformAt is fixed has it in p_at, else -1, and p_delay is added to
-- now; NULL for both arrays is now for all. Gives a row for the call, and one for each shard
-- that has a new job or one whose time the rule may have moved: index and their earliest.
CREATE FUNCTION {schema}.push(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_index int[], p_ids text[], p_at bigint[], p_delay bigint[], p_scores double precision[], p_data bytea[], p_meta bytea[],
  x_index int[], x_ids text[], x_scores double precision[], x_data bytea[], x_meta bytea[])
RETURNS TABLE (status smallint, now bigint, index int, due bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '500ms' AS {$}
#variable_conflict use_column
DECLARE
  v_base int;
  v_now  bigint := {schema}.clock(p_now);
  v_more boolean;
  v_index int[];
  v_due   bigint[];
BEGIN
  -- In the snapshot of the call; whoever changes a layout waits for older transactions.
  SELECT q.id * 16384 INTO v_base FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    RETURN QUERY SELECT CASE {schema}.no_shard(p_queue) WHEN 1 THEN 1 ELSE 3 END::smallint, v_now, NULL::int, NULL::bigint;
    RETURN;
  END IF;
  WITH put AS (
    INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, more, score, data, meta, error)
    SELECT v_base + e.index, e.id, CASE WHEN e.at >= 0 THEN e.at ELSE {schema}.later(v_now, coalesce(e.delay, 0)) END, v_now, -1, 0,
      x_ids IS NOT NULL AND e.id = ANY (x_ids), e.score, e.data, e.meta, ''
    FROM unnest(p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta) e (index, id, at, delay, score, data, meta)
    ON CONFLICT (shard, id) DO UPDATE SET
      prior = j.retry_count,
      perform_at = CASE WHEN p_rule = 0 OR j.retry_count >= 0 THEN j.perform_at
        ELSE {schema}.pushed_at(p_rule, p_limit, j.perform_at, excluded.perform_at, least(j.first_push, v_now)) END,
      first_push = least(j.first_push, v_now),
      more = j.more OR excluded.more OR j.data <> excluded.data,
      score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
      meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
    RETURNING shard, perform_at, prior, more
  ), touched AS (
    SELECT shard, bool_or(more) AS more, count(*) FILTER (WHERE prior IS NULL) AS fresh,
      min(perform_at) FILTER (WHERE prior IS NULL OR p_rule <> 0) AS due
    FROM put GROUP BY shard
  ), counted AS (
    INSERT INTO {schema}.tallies (shard, fresh, retries, dead, processed, failed)
    SELECT shard, fresh, 0, 0, 0, 0 FROM touched WHERE fresh > 0
  ), noted AS (
    -- Half a second more than the floor is known to be, for a turn at the same time.
    INSERT INTO {schema}.inbox (shard, kind, perform_at)
    SELECT t.shard, 'e', t.due FROM touched t
    WHERE t.due < v_now - 500000 OR t.due < (SELECT l.floor FROM {schema}.leases l WHERE l.shard = t.shard)
  )
  SELECT bool_or(more), array_agg(shard - v_base) FILTER (WHERE due IS NOT NULL), array_agg(due) FILTER (WHERE due IS NOT NULL)
  INTO v_more, v_index, v_due FROM touched;

  IF v_more THEN
    PERFORM {schema}.add_payloads(array_agg(v_base + e.index), array_agg(e.id), array_agg(e.score), array_agg(e.data), array_agg(e.meta))
    FROM (
      SELECT * FROM unnest(p_index, p_ids, p_scores, p_data, p_meta)
      UNION ALL
      SELECT * FROM unnest(x_index, x_ids, x_scores, x_data, x_meta)
    ) e (index, id, score, data, meta);
  END IF;
  RETURN QUERY SELECT 0::smallint, v_now, NULL::int, NULL::bigint
  UNION ALL SELECT 0::smallint, v_now, i, d FROM unnest(v_index, v_due) u (i, d);
END {$};
