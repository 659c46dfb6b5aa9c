-- Returns a shard's queued jobs by (perform_at, id), at most p_most behind a place.
CREATE FUNCTION {schema}.jobs_by_time(p_shard int, p_time bigint, p_id text, p_most int, p_descending boolean)
RETURNS SETOF {schema}.jobs LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
BEGIN
  IF p_descending THEN
    RETURN QUERY SELECT j.* FROM (VALUES (false), (true)) p (parked), LATERAL (
      SELECT * FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked = p.parked AND (j.perform_at, j.id) < (p_time, p_id COLLATE "C")
      ORDER BY j.perform_at DESC, j.id DESC LIMIT p_most
    ) j ORDER BY j.perform_at DESC, j.id DESC LIMIT p_most;
  ELSE
    RETURN QUERY SELECT j.* FROM (VALUES (false), (true)) p (parked), LATERAL (
      SELECT * FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked = p.parked AND (j.perform_at, j.id) > (p_time, p_id COLLATE "C")
      ORDER BY j.perform_at, j.id LIMIT p_most
    ) j ORDER BY j.perform_at, j.id LIMIT p_most;
  END IF;
END {$};
