-- Deletes limiters that are gone, of up to p_most rows that follow a key, and of as many that are
-- the first of the queue. It skips rows that another call has locked.
CREATE FUNCTION {schema}.prune_limiters(p_queue int, p_after text, p_most int, p_now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  c_kept CONSTANT bigint := 60000000; -- core.LimiterKept
  v_gone text[];
BEGIN
  SELECT array_agg(n.key) INTO v_gone FROM (
    (SELECT l.key, greatest(l.next, l.started, l.stopped) AS till FROM {schema}.limiters l
     WHERE l.queue = p_queue AND l.key > p_after COLLATE "C" ORDER BY l.key LIMIT p_most)
    UNION ALL
    (SELECT l.key, greatest(l.next, l.started, l.stopped) FROM {schema}.limiters l
     WHERE l.queue = p_queue ORDER BY l.key LIMIT p_most)
  ) n WHERE n.till <= p_now - c_kept;
  IF v_gone IS NULL THEN
    RETURN;
  END IF;

  DELETE FROM {schema}.limiters d WHERE d.ctid = ANY (ARRAY(
    SELECT l.ctid FROM unnest(v_gone) AS g (key) CROSS JOIN LATERAL (
      SELECT x.ctid FROM {schema}.limiters x
      WHERE x.queue = p_queue AND x.key = g.key COLLATE "C"
        AND greatest(x.next, x.started, x.stopped) <= p_now - c_kept
      FOR UPDATE SKIP LOCKED
    ) l));
END {$};
