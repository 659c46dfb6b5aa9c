-- Returns the id of a shard, or NULL if the shard does not exist. It is in plpgsql since that
-- keeps the plan: in SQL each call would plan anew. The caller has switched off sequential scans.
CREATE FUNCTION {schema}.find_shard(p_queue text, p_index int) RETURNS int LANGUAGE plpgsql STABLE AS {$}
BEGIN
  RETURN (SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index);
END {$};
