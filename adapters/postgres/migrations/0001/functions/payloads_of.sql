-- Returns the payloads of a queued job in order, at most p_limit.
CREATE FUNCTION {schema}.payloads_of(p_shard int, p_id text, p_limit int)
RETURNS TABLE (score double precision, data bytea, meta bytea) LANGUAGE sql STABLE AS {$}
  SELECT p.score, p.data, p.meta FROM (
    SELECT j.score, j.data, j.meta FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id
    UNION ALL
    SELECT x.score, x.data, x.meta FROM {schema}.payloads x WHERE x.shard = p_shard AND x.id = p_id
  ) p ORDER BY p.score, p.data LIMIT p_limit
{$};
