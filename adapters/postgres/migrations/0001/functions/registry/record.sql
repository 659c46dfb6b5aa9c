-- Stores an owner's counts of queues by minute (ports.Registry.Record), and deletes rows that are
-- an hour older than the listed ones. The arrays have one element for each record, and no queue
-- and minute twice. Unknown queues and minutes far from now are ignored. The lock keeps the queues
-- as they are until the end: forget waits for it.
CREATE FUNCTION {schema}.record(p_owner text, p_now bigint, p_queues text[], p_minutes bigint[], p_counted bigint[], p_stats bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_minute CONSTANT bigint := 60000000;
  c_hour   CONSTANT bigint := 60 * c_minute;
  v_now    bigint;
  v_kept   bigint;
BEGIN
  LOCK TABLE {schema}.queues IN ACCESS SHARE MODE;
  v_now := {schema}.clock(p_now);
  v_kept := v_now - v_now % c_minute - 24 * c_hour;

  INSERT INTO {schema}.minute_records AS h (queue, minute, owner, counted, stats)
  SELECT q.id, r.minute, p_owner, r.counted, r.stats
  FROM unnest(p_queues, p_minutes, p_counted, p_stats) WITH ORDINALITY AS r (queue, minute, counted, stats, place)
  JOIN {schema}.queues q ON q.name = r.queue COLLATE "C"
  WHERE r.minute BETWEEN v_kept AND v_now + c_hour
  ORDER BY r.place
  ON CONFLICT (queue, minute, owner) DO UPDATE SET counted = excluded.counted, stats = excluded.stats
  WHERE excluded.counted > h.counted;

  DELETE FROM {schema}.minute_records h WHERE (h.queue, h.minute, h.owner) IN (
    SELECT o.queue, o.minute, o.owner FROM {schema}.queues q CROSS JOIN LATERAL (
      SELECT i.queue, i.minute, i.owner FROM {schema}.minute_records i
      WHERE i.queue = q.id AND i.minute < v_kept - c_hour
      ORDER BY i.minute LIMIT 100 FOR UPDATE SKIP LOCKED) o
    LIMIT 1000);
END {$};
