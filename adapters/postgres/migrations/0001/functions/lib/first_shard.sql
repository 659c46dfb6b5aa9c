-- Returns the id of the first shard of the queue with an id. The ids of its other shards follow.
-- Each queue has room for core.MaxShards, which is 16384.
CREATE FUNCTION {schema}.first_shard(p_queue_id int) RETURNS int LANGUAGE sql IMMUTABLE AS {$}
  SELECT p_queue_id * 16384
{$};
