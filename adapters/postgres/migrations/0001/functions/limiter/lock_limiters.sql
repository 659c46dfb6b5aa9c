-- Locks the rows of limiters in order of key, so that two calls never deadlock. Missing rows are
-- made where p_made is true. A row may be deleted between both steps; then they are repeated. Each
-- row is looked up by its key, whatever the server knows of the table: a queue may have many.
CREATE FUNCTION {schema}.lock_limiters(p_queue int, p_keys text[], p_made boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  v_needed CONSTANT int := cardinality(array_positions(p_made, true));
  v_locked bigint;
BEGIN
  LOOP
    INSERT INTO {schema}.limiters (queue, key, next, started, last, stopped, changed)
    SELECT p_queue, k.key, 0, 0, 0, 0, 0 FROM unnest(p_keys, p_made) AS k (key, made)
    WHERE k.made ORDER BY k.key COLLATE "C"
    ON CONFLICT (queue, key) DO NOTHING;

    SELECT count(*) FILTER (WHERE k.made) INTO v_locked
    FROM (
      SELECT a.key, a.made FROM unnest(p_keys, p_made) AS a (key, made) ORDER BY a.key COLLATE "C"
    ) k CROSS JOIN LATERAL (
      SELECT FROM {schema}.limiters l WHERE l.queue = p_queue AND l.key = k.key COLLATE "C" FOR NO KEY UPDATE
    ) l;
    EXIT WHEN v_locked = v_needed;
  END LOOP;
END {$};
