-- Runs p_query, which lists places of a queue's shards in the order of an index, and returns its
-- rows. Its parameters are p_indexes, p_most, p_id, p_key, p_end and p_group, in this order after
-- the queue's name. The planner may only go by indexes: where nobody has counted a long table, it
-- takes a shard for a small part and sorts it.
CREATE FUNCTION {schema}.list_places(p_query text, p_queue text, p_indexes int[], p_most int, p_id text, p_key bigint, p_end text, p_group text)
RETURNS TABLE (index int, key bigint, id text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
BEGIN
  RETURN QUERY EXECUTE p_query USING p_queue, p_indexes, p_most, p_id, p_key, p_end, p_group;
END {$};
