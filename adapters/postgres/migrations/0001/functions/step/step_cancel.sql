-- Marks claimed jobs as cancelled (ports.Operator.Cancel). A job that a caller's transaction is
-- settling is left to that transaction.
CREATE FUNCTION {schema}.step_cancel(p_queue text, p_index int, p_now bigint, p_ids text[], p_drop boolean)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;
  WITH locked AS MATERIALIZED (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = v_locked.shard AND c.id = ANY (p_ids) AND c.cancel_drop IS DISTINCT FROM p_drop
    ORDER BY c.id FOR UPDATE SKIP LOCKED
  )
  UPDATE {schema}.claimed c SET cancel_drop = p_drop WHERE c.shard = v_locked.shard AND c.id = ANY (ARRAY(SELECT id FROM locked));
  GET DIAGNOSTICS v_reply.handled = ROW_COUNT;
  UPDATE {schema}.shards s SET exceptional = true WHERE s.id = v_locked.shard AND v_reply.handled > 0;
  RETURN v_reply;
END {$};
