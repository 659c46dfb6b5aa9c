-- Stores an owner's counts of queues by minute (ports.Registry.Record), adds what they have changed to
-- the days, and deletes rows that are an hour older than the listed ones. The first arrays have one
-- element for each record, and no queue and minute twice; p_known is the counted of the row that the
-- record replaces, or 0. The last arrays have one element for each day, and p_changes 134 for each.
-- Returns false, and stores nothing, if another row is there than p_known says: another call has
-- stored a record of this owner. The days are inserted and locked in one order, and only one call of an
-- owner can hold the lock of a day. The lock of the queues keeps them as they are until the end: forget
-- waits for it.
CREATE FUNCTION {schema}.record(p_owner text, p_now bigint,
  p_queues int[], p_minutes bigint[], p_known bigint[], p_counted bigint[], p_stats bytea[],
  p_day_queues int[], p_days bigint[], p_changes float8[])
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_values CONSTANT int    := 134;
  c_most   CONSTANT int    := 33; -- storekit.DaysStored
  c_minute CONSTANT bigint := 60000000;
  c_hour   CONSTANT bigint := 60 * c_minute;
  c_day    CONSTANT bigint := 24 * c_hour;
  v_now    bigint;
  v_kept   bigint;
  v_locked int;
  v_new    boolean := false;
BEGIN
  LOCK TABLE {schema}.queues IN ACCESS SHARE MODE;
  v_now := {schema}.clock(p_now);
  v_kept := v_now - v_now % c_minute - 24 * c_hour;

  -- New days are inserted before any is locked: a call that holds a lock must not wait for the insert of
  -- another one. A day that another call removes in between is inserted by a second round.
  LOOP
    IF EXISTS (
      SELECT FROM unnest(p_day_queues, p_days) r (queue, day)
      WHERE NOT EXISTS (SELECT FROM {schema}.day_records d WHERE d.queue = r.queue AND d.day = r.day))
    THEN
      INSERT INTO {schema}.day_records (queue, day, sums)
      SELECT q.id, r.day, array_fill(0::float8, ARRAY[c_values])
      FROM unnest(p_day_queues, p_days) r (queue, day)
      JOIN {schema}.queues q ON q.id = r.queue
      ORDER BY q.id, r.day
      ON CONFLICT DO NOTHING;
      v_new := true;
    END IF;

    PERFORM FROM unnest(p_day_queues, p_days) r (queue, day)
    JOIN {schema}.day_records d ON d.queue = r.queue AND d.day = r.day
    ORDER BY d.queue, d.day FOR UPDATE OF d;
    GET DIAGNOSTICS v_locked = ROW_COUNT;
    EXIT WHEN v_new OR v_locked = cardinality(p_days);
  END LOOP;

  -- Of a queue with too many days the one that is farthest from the present one goes, with minutes of it
  -- that are left: they go by their days below.
  IF v_new THEN
    WITH gone AS (
      DELETE FROM {schema}.day_records d WHERE (d.queue, d.day) IN (
        SELECT o.queue, o.day FROM (SELECT DISTINCT r.queue FROM unnest(p_day_queues) r (queue)) q CROSS JOIN LATERAL (
          SELECT e.queue, e.day FROM {schema}.day_records e WHERE e.queue = q.queue
          ORDER BY abs(e.day - (v_now - v_now % c_day)), e.day DESC OFFSET c_most FOR UPDATE SKIP LOCKED) o)
      RETURNING d.queue, d.day)
    DELETE FROM {schema}.minute_records h USING gone g
    WHERE h.queue = g.queue AND h.minute >= g.day AND h.minute < g.day + c_day;
  END IF;

  IF EXISTS (
    SELECT FROM unnest(p_queues, p_minutes, p_known) r (queue, minute, known)
    WHERE r.known <> coalesce((
      SELECT h.counted FROM {schema}.minute_records h
      WHERE h.queue = r.queue AND h.minute = r.minute AND h.owner = p_owner), 0))
  THEN
    RETURN false;
  END IF;

  INSERT INTO {schema}.minute_records AS h (queue, minute, owner, counted, stats)
  SELECT q.id, r.minute, p_owner, r.counted, r.stats
  FROM unnest(p_queues, p_minutes, p_counted, p_stats) WITH ORDINALITY AS r (queue, minute, counted, stats, place)
  JOIN {schema}.queues q ON q.id = r.queue
  ORDER BY r.place
  ON CONFLICT (queue, minute, owner) DO UPDATE SET counted = excluded.counted, stats = excluded.stats;

  UPDATE {schema}.day_records d SET sums = (
    SELECT array_agg(greatest(0, v.sum + v.change) ORDER BY v.n)
    FROM unnest(d.sums, p_changes[(r.place - 1) * c_values + 1 : r.place * c_values])
      WITH ORDINALITY v (sum, change, n))
  FROM unnest(p_day_queues, p_days) WITH ORDINALITY r (queue, day, place)
  WHERE d.queue = r.queue AND d.day = r.day;

  -- With the first record of a minute, old minutes go. One whose day another call has locked stays until a
  -- later call.
  IF 0 <> ALL (p_known) THEN
    RETURN true;
  END IF;
  WITH gone AS (
    DELETE FROM {schema}.minute_records h WHERE (h.queue, h.minute, h.owner) IN (
      SELECT o.queue, o.minute, o.owner FROM {schema}.queues q CROSS JOIN LATERAL (
        SELECT i.queue, i.minute, i.owner FROM {schema}.minute_records i
        JOIN {schema}.day_records e ON e.queue = i.queue AND e.day = i.minute - i.minute % c_day
        WHERE i.queue = q.id AND i.minute < v_kept - c_hour
        ORDER BY i.minute LIMIT 100 FOR UPDATE SKIP LOCKED) o
      LIMIT 1000)
    RETURNING h.queue, h.minute)
  UPDATE {schema}.day_records d SET closed = greatest(d.closed, g.minute)
  FROM (SELECT h.queue, max(h.minute) AS minute FROM gone h GROUP BY h.queue, h.minute - h.minute % c_day) g
  WHERE d.queue = g.queue AND d.day = g.minute - g.minute % c_day;
  RETURN true;
END {$};
