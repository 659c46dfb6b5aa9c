-- Returns the first places of queued jobs by (perform_at, id) behind one, in each of the shards of
-- a queue that are named by their indexes, at most p_most of a shard.
CREATE FUNCTION {schema}.places_by_time(p_first int, p_indexes int[], p_time bigint, p_id text, p_most int, p_descending boolean)
RETURNS TABLE (index int, key bigint, id text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
#variable_conflict use_column
BEGIN
  IF p_descending THEN
    RETURN QUERY SELECT s.index, e.perform_at, e.id FROM unnest(p_indexes) s (index) CROSS JOIN LATERAL (
      SELECT j.perform_at, j.id FROM (VALUES (false), (true)) p (parked), LATERAL (
        SELECT j.perform_at, j.id FROM {schema}.jobs j
        WHERE j.shard = p_first + s.index AND j.parked = p.parked AND (j.perform_at, j.id) < (p_time, p_id COLLATE "C")
        ORDER BY j.perform_at DESC, j.id DESC LIMIT p_most
      ) j ORDER BY j.perform_at DESC, j.id DESC LIMIT p_most
    ) e;
  ELSE
    RETURN QUERY SELECT s.index, e.perform_at, e.id FROM unnest(p_indexes) s (index) CROSS JOIN LATERAL (
      SELECT j.perform_at, j.id FROM (VALUES (false), (true)) p (parked), LATERAL (
        SELECT j.perform_at, j.id FROM {schema}.jobs j
        WHERE j.shard = p_first + s.index AND j.parked = p.parked AND (j.perform_at, j.id) > (p_time, p_id COLLATE "C")
        ORDER BY j.perform_at, j.id LIMIT p_most
      ) j ORDER BY j.perform_at, j.id LIMIT p_most
    ) e;
  END IF;
END {$};
