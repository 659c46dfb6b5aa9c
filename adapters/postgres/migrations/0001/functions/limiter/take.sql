-- Uses slots of limiters of a queue and takes grants, as core.Rate.Use and core.Rate.Take define, and
-- deletes limiters that are gone (ports.Limiter.Take). The lists have an element for each take, times
-- in µs. status is ok or unknown_queue. A deletion of the queue waits for the call, since it locks the
-- table of queues.
CREATE FUNCTION {schema}.take(p_queue text, p_keys text[], p_intervals bigint[], p_tolerances bigint[], p_uses bigint[],
  p_holds bigint[], p_wants bigint[], p_aheads bigint[], p_soons bigint[], p_now bigint,
  OUT status text, OUT now bigint, OUT used bigint[], OUT starts bigint[], OUT granted bigint[], OUT firsts bigint[],
  OUT stops bigint[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_queue int;
  v_now   bigint;
BEGIN
  SELECT q.id INTO v_queue FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;

  PERFORM {schema}.lock_limiters(v_queue, p_keys, ARRAY(
    SELECT t.pace > 0 AND t.want + t.use > 0 FROM unnest(p_intervals, p_wants, p_uses) WITH ORDINALITY
      AS t (pace, want, use, n) ORDER BY t.n));
  v_now := {schema}.clock(p_now);

  WITH taken AS MATERIALIZED (
    SELECT t.n, l.ctid AS place, m.stopped, u.granted AS used, CASE WHEN u.granted > 0 THEN u.first ELSE 0 END AS start, k.*,
      s.step > 0 OR t.pace > 0 AND (u.granted > 0 OR k.granted > 0) AS changed
    FROM unnest(p_keys, p_intervals, p_tolerances, p_uses, p_holds, p_wants, p_aheads, p_soons) WITH ORDINALITY
      AS t (key, pace, tolerance, use, hold, want, ahead, soon, n)
    LEFT JOIN LATERAL (
      SELECT x.ctid, x.* FROM {schema}.limiters x WHERE x.queue = v_queue AND x.key = t.key COLLATE "C" LIMIT 1
    ) l ON true
    CROSS JOIN LATERAL (SELECT greatest(0, l.changed - v_now) AS step) s -- the clock stepped back
    CROSS JOIN LATERAL (SELECT
      greatest(0, l.next - s.step) AS next,
      greatest(0, l.started - s.step) AS started,
      greatest(0, l.last - s.step) AS last,
      greatest(0, l.stopped - s.step) AS stopped) m
    -- A use is a take of which started is the time.
    CROSS JOIN LATERAL {schema}.take_slots(v_now, t.pace, t.tolerance, t.use, t.hold, 0, t.pace - 1, m.stopped,
      m.started, m.started, m.last) u
    CROSS JOIN LATERAL {schema}.take_slots(v_now, t.pace, t.tolerance, t.want + t.use - u.granted, t.ahead, t.soon,
      0, m.stopped, m.next, u.next, u.last) k
  ), written AS (
    UPDATE {schema}.limiters l SET
      next = k.next,
      started = k.started,
      last = k.last,
      stopped = k.stopped,
      changed = v_now
    FROM taken k
    WHERE l.ctid = k.place AND k.changed -- locked, so it stays in its place
  )
  SELECT
    array_agg(k.used ORDER BY k.n),
    array_agg(k.start ORDER BY k.n),
    array_agg(k.granted ORDER BY k.n),
    array_agg(k.first ORDER BY k.n),
    array_agg(CASE WHEN k.stopped > v_now THEN k.stopped ELSE 0 END ORDER BY k.n)
  INTO used, starts, granted, firsts, stops FROM taken k;

  PERFORM {schema}.prune_limiters(v_queue, coalesce(p_keys[1 + floor(random() * cardinality(p_keys))::int], ''),
    10 + cardinality(p_keys), v_now);
  status := 'ok';
  now := v_now;
END {$};
