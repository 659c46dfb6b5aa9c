-- Returns the places, from 1, of the entries of a push that are stale: whose score is at or below the
-- mark of their id (docs/rules.md 16). It counts them. It returns none if the queue has another layout,
-- which the push reports.
CREATE FUNCTION {schema}.drop_stale(p_queue text, p_shards int, p_generation bigint, p_index int[], p_ids text[], p_scores float8[])
RETURNS SETOF int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
DECLARE
  v_first  int;
  v_places int[];
BEGIN
  SELECT {schema}.first_shard(q.id) INTO v_first FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF v_first IS NULL THEN
    RETURN;
  END IF;

  v_places := ARRAY(
    SELECT e.place FROM unnest(p_index, p_ids, p_scores) WITH ORDINALITY e (index, id, score, place), LATERAL (
      SELECT max(p.score) AS mark FROM {schema}.past p WHERE p.shard = v_first + e.index AND p.id = e.id COLLATE "C" AND p.raises
    ) m
    WHERE e.score <= m.mark
  );
  INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, stale)
  SELECT v_first + p_index[s.place], 0, 0, 0, 0, 0, count(*) FROM unnest(v_places) s (place)
  GROUP BY p_index[s.place] ORDER BY p_index[s.place];
  RETURN QUERY SELECT unnest(v_places);
END {$};
