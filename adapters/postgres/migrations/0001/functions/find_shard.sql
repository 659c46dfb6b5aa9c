-- Returns the id of a shard, or NULL if there is no such shard.
CREATE FUNCTION {schema}.find_shard(p_queue text, p_index int) RETURNS int LANGUAGE sql STABLE AS {$}
  SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index
{$};
