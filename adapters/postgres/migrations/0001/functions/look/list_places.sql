-- Runs p_query, which lists places in a queue's shards, and returns its rows. The parameters of
-- p_query are the queue's name, p_indexes, p_most, p_id, p_key, p_end and p_group, in this order.
-- The settings keep the planner to indexes. Before the first ANALYZE it takes a shard for a small
-- part of its table, and would sort all of it.
CREATE FUNCTION {schema}.list_places(p_query text, p_queue text, p_indexes int[], p_most int, p_id text, p_key bigint, p_end text, p_group text)
RETURNS TABLE (index int, key bigint, id text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
BEGIN
  RETURN QUERY EXECUTE p_query USING p_queue, p_indexes, p_most, p_id, p_key, p_end, p_group;
END {$};
