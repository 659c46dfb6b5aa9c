-- Pushes the entries of several callers, for distinct ids in order of (shard, id), as push does for
-- one caller. It stores those whose ids are not queued, so that each of them makes a new job, and
-- locks no queued job. Returns a row without index, with the places of the others, from 1, and for
-- each shard the row of push. With another status than ok it has stored nothing. It fails by
-- serialization_failure if another transaction has just queued one of the ids.
CREATE FUNCTION {schema}.push_together(p_queue text, p_shards int, p_generation bigint, p_now bigint,
  p_index int[], p_ids text[], p_at bigint[], p_delay bigint[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS TABLE (status text, now bigint, index int, earliest bigint, queued int[]) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
#variable_conflict use_column
DECLARE
  c_keep   CONSTANT smallint := 0;  -- core.Keep; a new job is the same by any rule
  v_first  int;
  v_queued int[];
  r        record;
BEGIN
  SELECT {schema}.first_shard(q.id) INTO v_first FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  v_queued := ARRAY(
    SELECT e.place::int FROM unnest(p_index, p_ids) WITH ORDINALITY e (index, id, place)
    WHERE (SELECT true FROM {schema}.jobs j WHERE j.shard = v_first + e.index AND j.id = e.id)
    ORDER BY e.place);
  IF cardinality(v_queued) = cardinality(p_ids) THEN
    RETURN QUERY SELECT 'ok', {schema}.clock(p_now), NULL::int, NULL::bigint, v_queued;
    RETURN;
  END IF;

  IF cardinality(v_queued) > 0 THEN
    SELECT array_agg(e.index), array_agg(e.id), CASE WHEN p_at IS NOT NULL THEN array_agg(e.at) END,
      CASE WHEN p_delay IS NOT NULL THEN array_agg(e.delay) END, array_agg(e.score), array_agg(e.data), array_agg(e.meta)
    INTO p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta
    FROM (
      SELECT * FROM unnest(p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta)
        WITH ORDINALITY u (index, id, at, delay, score, data, meta, place)
      WHERE u.place::int <> ALL (v_queued) ORDER BY u.place
    ) e;
  END IF;

  FOR r IN
    SELECT * FROM {schema}.push(p_queue, p_shards, p_generation, p_now, c_keep, 0,
      p_index, p_ids, p_at, p_delay, p_scores, p_data, p_meta, NULL, NULL, NULL, NULL, NULL)
  LOOP
    IF r.new <> cardinality(p_ids) THEN
      RAISE EXCEPTION 'another transaction has queued an id of this push' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN QUERY SELECT r.status, r.now, r.index, r.earliest, CASE WHEN r.index IS NULL THEN v_queued END;
  END LOOP;
END {$};
