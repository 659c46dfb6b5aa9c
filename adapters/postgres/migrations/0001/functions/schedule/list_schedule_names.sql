-- Returns the first names of the schedules of a queue's shards behind p_after, at most p_most, in
-- order: the number of schedules of each, and the shard's index, the id and the record of the one
-- with the smallest id.
CREATE FUNCTION {schema}.list_schedule_names(p_queue text, p_indexes int[], p_after text, p_most int)
RETURNS TABLE (name text, count bigint, index int, id text, record text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH found AS MATERIALIZED (
    SELECT u.index, q.first + u.index AS shard, n.name, n.count
    FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C") q
    CROSS JOIN unnest(p_indexes) u (index) CROSS JOIN LATERAL (
      SELECT n.name, n.count FROM {schema}.schedule_names n WHERE n.shard = q.first + u.index AND n.name > p_after COLLATE "C"
      ORDER BY n.name LIMIT p_most
    ) n
  ), summed AS MATERIALIZED (
    SELECT f.name, sum(f.count)::bigint AS count FROM found f GROUP BY f.name ORDER BY f.name LIMIT p_most
  ), first AS MATERIALIZED (
    SELECT DISTINCT ON (f.name) f.name, s.count, f.index, f.shard, i.id FROM summed s JOIN found f ON f.name = s.name, LATERAL (
      SELECT t.id FROM {schema}.schedules t WHERE t.shard = f.shard AND t.name = f.name ORDER BY t.id LIMIT 1
    ) i ORDER BY f.name, i.id
  )
  SELECT f.name, f.count, f.index, f.id, r.record FROM first f CROSS JOIN LATERAL (
    SELECT t.record::text FROM {schema}.schedules t WHERE t.shard = f.shard AND t.id = f.id AND t.name = f.name OFFSET 0
  ) r ORDER BY f.name;
END {$};
