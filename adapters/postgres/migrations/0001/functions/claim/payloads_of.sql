-- Returns the payloads of a queued job in order, at most p_limit: place is NULL for the one in the
-- job's row, else the ctid in the table payloads.
CREATE FUNCTION {schema}.payloads_of(p_shard int, p_id text, p_limit int)
RETURNS TABLE (score double precision, data bytea, meta bytea, place tid) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = on SET jit = off AS {$}
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT p.score, p.data, p.meta, p.place FROM (
    SELECT j.score, substr(j.data, 1, 256) AS beginning, j.data, j.meta, NULL::tid AS place FROM {schema}.jobs j
    WHERE j.shard = p_shard AND j.id = p_id AND j.data IS NOT NULL
    UNION ALL
    SELECT * FROM (
      SELECT x.score, substr(x.data, 1, 256) AS beginning, x.data, x.meta, x.ctid FROM {schema}.payloads x
      WHERE x.shard = p_shard AND x.id = p_id
        AND x.score >= (SELECT j.low FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id)
      ORDER BY x.score, beginning, x.data LIMIT p_limit
    ) x
  ) p ORDER BY p.score, p.beginning, p.data LIMIT p_limit;
END {$};
