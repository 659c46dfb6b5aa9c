-- Locks the rows of limiters in order of key, so that two calls never deadlock, and makes those of
-- p_create that are missing. A row may be deleted between both steps; then they are repeated.
CREATE FUNCTION {schema}.lock_limiters(p_queue int, p_keys text[], p_create text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_locked bigint;
BEGIN
  LOOP
    INSERT INTO {schema}.limiters (queue, key, next, last, stopped, changed)
    SELECT p_queue, k.key, 0, 0, 0, 0 FROM unnest(p_create) AS k (key) ORDER BY k.key COLLATE "C"
    ON CONFLICT (queue, key) DO NOTHING;

    SELECT count(*) FILTER (WHERE x.key = ANY (p_create)) INTO v_locked FROM (
      SELECT l.key FROM {schema}.limiters l
      WHERE l.queue = p_queue AND l.key = ANY (p_keys)
      ORDER BY l.key FOR NO KEY UPDATE
    ) x;
    EXIT WHEN v_locked = cardinality(p_create);
  END LOOP;
END {$};
