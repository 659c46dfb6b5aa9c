-- Deletes queued jobs, and returns all their payloads as they would be buried. It waits for pushes,
-- in order of id. The caller holds the shard's lock.
CREATE FUNCTION {schema}.remove_jobs(p_shard int, p_ids text[]) RETURNS SETOF {schema}.arrival LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_ids text[];
BEGIN
  SELECT array_agg(id) INTO v_ids FROM (
    SELECT j.id FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = ANY (p_ids) ORDER BY j.id FOR UPDATE
  ) locked;
  RETURN QUERY
  WITH gone AS (
    DELETE FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = ANY (v_ids) RETURNING j.*
  ), rest AS (
    DELETE FROM {schema}.payloads p WHERE p.shard = p_shard AND p.id = ANY (v_ids) RETURNING p.*
  )
  SELECT 'buried'::{schema}.arrival_kind, 0::smallint, 0::bigint, g.perform_at, g.first_push, g.score, g.retry_count, g.recoveries, g.id::text,
    g.error, g.data, g.meta FROM gone g
  UNION ALL
  SELECT 'buried'::{schema}.arrival_kind, 0::smallint, 0::bigint, g.perform_at, g.first_push, r.score, g.retry_count, g.recoveries, g.id::text,
    g.error, r.data, r.meta FROM gone g JOIN rest r ON r.id = g.id;
END {$};
