-- Returns when shards can next give a job, in the order asked, NULL for never. It is now if the
-- inbox holds more than merge_inboxes merges in one call. status is ok, unknown_queue or
-- no_such_shard.
CREATE FUNCTION {schema}.heads(p_queues text[], p_indexes int[], p_now bigint)
RETURNS TABLE (status text, now bigint, head bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
#variable_conflict use_column
BEGIN
  PERFORM {schema}.merge_inboxes(q.queue, NULL, q.indexes) FROM (
    SELECT u.queue, array_agg(u.index) AS indexes FROM unnest(p_queues, p_indexes) u (queue, index) GROUP BY u.queue ORDER BY u.queue
  ) q;
  RETURN QUERY
  SELECT CASE WHEN l.shard IS NULL THEN {schema}.missing_shard(a.queue) ELSE 'ok' END, {schema}.clock(p_now),
    CASE WHEN s.paused THEN NULL
      WHEN EXISTS (SELECT FROM {schema}.inbox i
          WHERE i.shard = s.id AND (i.tx, i.seq) >= ({schema}.scan_from(s.inbox_from), s.inbox_seq))
        OR EXISTS (SELECT FROM unnest(s.inbox_open) o (tx), LATERAL (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx = o.tx LIMIT 1) i) THEN {schema}.clock(p_now)
      ELSE {schema}.head(l.shard, l.floor) END
  FROM unnest(p_queues, p_indexes) WITH ORDINALITY a (queue, index, ordinality)
  LEFT JOIN {schema}.leases l ON l.shard = {schema}.find_shard(a.queue, a.index)
  LEFT JOIN {schema}.shards s ON s.id = l.shard
  ORDER BY a.ordinality;
END {$};
