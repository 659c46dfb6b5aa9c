-- Returns the status for a queue that does not have the caller's shard count and generation:
-- unknown_queue or layout_mismatch.
CREATE FUNCTION {schema}.missing_layout(p_queue text) RETURNS text LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C") THEN 'layout_mismatch' ELSE 'unknown_queue' END
{$};
