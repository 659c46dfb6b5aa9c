-- Returns a row for each asked shard, in their order: its place from 1, and head, when its next
-- schedule is due, NULL for never. A row with the record of each of its first p_limit schedules
-- that are due follows, in order of (tick, id, name). status is ok, unknown_queue or no_such_shard.
CREATE FUNCTION {schema}.ticks(p_queues text[], p_indexes int[], p_now bigint, p_limit int)
RETURNS TABLE (place bigint, status text, now bigint, head bigint, id text, name text, record text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = on
SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.clock(p_now);
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT a.place, a.queue, s.id AS shard, s.paused FROM unnest(p_queues, p_indexes) WITH ORDINALITY a (queue, index, place)
    LEFT JOIN {schema}.shards s ON s.id = {schema}.find_shard(a.queue, a.index)
  )
  SELECT r.place, r.status, v_now, r.tick, r.id, r.name, r.record FROM (
    SELECT a.place, CASE WHEN a.shard IS NULL THEN {schema}.missing_shard(a.queue) ELSE 'ok' END AS status, h.tick,
      NULL::text AS id, NULL::text AS name, NULL::text AS record
    FROM asked a LEFT JOIN LATERAL (
      SELECT t.tick FROM {schema}.schedules t WHERE t.shard = a.shard AND NOT a.paused AND t.tick IS NOT NULL
      ORDER BY t.tick, t.id, t.name LIMIT 1
    ) h ON true
    UNION ALL
    SELECT a.place, 'ok', d.tick, d.id, d.name, d.record::text FROM asked a, LATERAL (
      SELECT t.tick, t.id, t.name, t.record FROM {schema}.schedules t
      WHERE t.shard = a.shard AND NOT a.paused AND t.tick IS NOT NULL AND t.tick <= v_now
      ORDER BY t.tick, t.id, t.name LIMIT p_limit
    ) d
  ) r ORDER BY r.place, r.id IS NOT NULL, r.tick, r.id COLLATE "C", r.name COLLATE "C";
END {$};
