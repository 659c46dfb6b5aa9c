-- Makes queued jobs due (ports.Operator.Expedite): those of p_ids that were first pushed before
-- p_before, 0 for any, and that have failed if p_failed is set, or are held if p_held is set. Held
-- jobs become fresh, and slots are gone.
CREATE FUNCTION {schema}.step_expedite(p_queue text, p_index int, p_now bigint, p_ids text[], p_before bigint, p_failed boolean,
  p_held boolean)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_released int;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  -- Only the ids select the rows, or the planner may read all jobs that are not due.
  WITH locked AS MATERIALIZED (
    SELECT j.id, j.perform_at, j.first_push, j.retry_count FROM {schema}.jobs j
    WHERE j.shard = v_locked.shard AND j.id = ANY (p_ids)
    ORDER BY j.id FOR UPDATE
  ), chosen AS MATERIALIZED (
    SELECT id, retry_count >= 0 AND perform_at = c_never AS held FROM locked
    WHERE perform_at > v_locked.now AND (p_before = 0 OR first_push < p_before) AND (retry_count >= 0 OR NOT p_failed)
      AND (retry_count >= 0 AND perform_at = c_never OR NOT p_held)
  ), changed AS (
    UPDATE {schema}.jobs j SET perform_at = v_locked.now, slot = NULL, retry_count = CASE WHEN j.perform_at = c_never THEN -1 ELSE j.retry_count END,
      recoveries = CASE WHEN j.perform_at = c_never AND j.retry_count >= 0 THEN 0 ELSE j.recoveries END
    WHERE j.shard = v_locked.shard AND j.id = ANY (ARRAY(SELECT id FROM chosen))
  )
  SELECT count(*), count(*) FILTER (WHERE held) INTO v_reply.handled, v_released FROM chosen;

  IF v_reply.handled > 0 THEN
    v_reply.earliest := v_locked.now;
    PERFORM {schema}.lower_floor(v_locked.shard, v_locked.now);
  END IF;
  IF v_released > 0 THEN
    PERFORM {schema}.change_counts(v_locked.shard, v_released, -v_released, 0);
  END IF;
  RETURN v_reply;
END {$};
