-- Returns the payloads of a dead letter in order, at most p_limit, with their ctids.
CREATE FUNCTION {schema}.dead_payloads_of(p_shard int, p_id text, p_limit int)
RETURNS TABLE (score double precision, data bytea, meta bytea, place tid) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = on SET jit = off AS {$}
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT x.score, x.data, x.meta, x.ctid FROM {schema}.dead_letter_payloads x
  WHERE x.shard = p_shard AND x.id = p_id
  ORDER BY x.score, substr(x.data, 1, 256), x.data LIMIT p_limit;
END {$};
