-- Takes grants of limiters of a queue, as core.Rate.Take defines, and deletes limiters that are
-- gone (ports.Limiter.Take). The lists have an element for each take, times in µs. status is ok or
-- unknown_queue. A deletion of the queue waits for the call, since it locks the table of queues.
CREATE FUNCTION {schema}.take(p_queue text, p_keys text[], p_intervals bigint[], p_tolerances bigint[], p_wants bigint[],
  p_aheads bigint[], p_now bigint,
  OUT status text, OUT now bigint, OUT granted bigint[], OUT firsts bigint[], OUT stops bigint[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_max  CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  c_kept CONSTANT bigint := 60000000; -- core.LimiterKept
  v_queue int;
  v_now   bigint;
BEGIN
  SELECT q.id INTO v_queue FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;

  PERFORM {schema}.lock_limiters(v_queue, p_keys, ARRAY(
    SELECT t.pace > 0 AND t.want > 0 FROM unnest(p_intervals, p_wants) WITH ORDINALITY AS t (pace, want, n) ORDER BY t.n));
  v_now := {schema}.clock(p_now);

  WITH taken AS MATERIALIZED (
    SELECT t.n, l.ctid AS place, t.pace, m.*, b.base, b.base - t.tolerance AS first, s.step, g.granted
    FROM unnest(p_keys, p_intervals, p_tolerances, p_wants, p_aheads) WITH ORDINALITY
      AS t (key, pace, tolerance, want, ahead, n)
    LEFT JOIN LATERAL (
      SELECT x.ctid, x.* FROM {schema}.limiters x WHERE x.queue = v_queue AND x.key = t.key COLLATE "C" LIMIT 1
    ) l ON true
    CROSS JOIN LATERAL (SELECT greatest(0, l.changed - v_now) AS step) s -- the clock stepped back
    CROSS JOIN LATERAL (SELECT
      greatest(0, l.next - s.step) AS next,
      greatest(0, l.last - s.step) AS last,
      greatest(0, l.stopped - s.step) AS stopped) m
    CROSS JOIN LATERAL (SELECT CASE
      WHEN t.pace = 0 THEN greatest(v_now, m.stopped)
      ELSE least(c_max, greatest(
        v_now,
        least(m.next, m.last + t.tolerance + t.pace),
        CASE WHEN m.stopped > greatest(0, v_now - c_kept) THEN m.stopped + t.tolerance END))
      END AS base) b
    CROSS JOIN LATERAL (SELECT v_now - b.base + t.tolerance + t.ahead AS room) r
    CROSS JOIN LATERAL (SELECT CASE
      WHEN t.pace = 0 THEN CASE WHEN b.base <= least(c_max, v_now + t.ahead) THEN t.want ELSE 0 END
      WHEN r.room < 0 THEN 0
      ELSE least(t.want, r.room / t.pace + 1, (c_max - b.base) / t.pace)
      END AS granted) g
  ), written AS (
    UPDATE {schema}.limiters l SET
      next = CASE WHEN k.pace > 0 AND k.granted > 0 THEN k.base + k.granted * k.pace ELSE k.next END,
      last = CASE WHEN k.pace > 0 AND k.granted > 0
        THEN greatest(k.last, v_now, k.first + (k.granted - 1) * k.pace) ELSE k.last END,
      stopped = k.stopped,
      changed = v_now
    FROM taken k
    WHERE l.ctid = k.place AND (k.step > 0 OR k.pace > 0 AND k.granted > 0) -- locked, so it stays in its place
  )
  SELECT
    array_agg(k.granted ORDER BY k.n),
    array_agg(k.first ORDER BY k.n),
    array_agg(CASE WHEN k.stopped > v_now THEN k.stopped ELSE 0 END ORDER BY k.n)
  INTO granted, firsts, stops FROM taken k;

  PERFORM {schema}.prune_limiters(v_queue, coalesce(p_keys[1 + floor(random() * cardinality(p_keys))::int], ''),
    10 + cardinality(p_keys), v_now);
  status := 'ok';
  now := v_now;
END {$};
