-- Returns the status for a shard that does not exist: unknown_queue or no_such_shard.
CREATE FUNCTION {schema}.missing_shard(p_queue text) RETURNS text LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C") THEN 'no_such_shard' ELSE 'unknown_queue' END
{$};
