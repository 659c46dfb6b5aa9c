-- Stops a limiter of a queue for p_for µs, as core.Limiter.Stop defines, and deletes limiters that
-- are gone (ports.Limiter.Stop). status is ok or unknown_queue.
CREATE FUNCTION {schema}.stop(p_queue text, p_key text, p_for bigint, p_now bigint, OUT status text)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off
SET lock_timeout = '500ms' AS {$}
DECLARE
  v_queue int;
  v_now   bigint;
BEGIN
  SELECT q.id INTO v_queue FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;

  PERFORM {schema}.lock_limiters(v_queue, ARRAY[p_key], ARRAY[p_for > 0]);
  v_now := {schema}.clock(p_now);

  UPDATE {schema}.limiters l SET
    next = greatest(0, l.next - s.step),
    started = greatest(0, l.started - s.step),
    last = greatest(0, l.last - s.step),
    stopped = CASE
      WHEN p_for = 0 THEN least(greatest(0, l.stopped - s.step), v_now)
      ELSE greatest(l.stopped - s.step, {schema}.later(v_now, p_for)) END,
    changed = v_now
  FROM (
    SELECT k.key, greatest(0, k.changed - v_now) AS step FROM {schema}.limiters k
    WHERE k.queue = v_queue AND k.key = p_key COLLATE "C"
  ) s
  WHERE l.queue = v_queue AND l.key = s.key AND (s.step > 0 OR CASE
    WHEN p_for = 0 THEN l.stopped > v_now
    ELSE l.stopped < {schema}.later(v_now, p_for) END);

  PERFORM {schema}.prune_limiters(v_queue, p_key, 10, v_now);
  status := 'ok';
END {$};
