-- Takes jobs out of the queue (ports.Operator.Bury, Delete): those of p_ids, or for NULL the first
-- p_limit by time of those that have failed. They are buried, with p_error if they have no error of
-- their own, or deleted if p_error is NULL.
CREATE FUNCTION {schema}.step_bury_or_delete(p_queue text, p_index int, p_now bigint, p_ids text[], p_limit int, p_error text)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_taken  {schema}.arrival[];
  v_fresh  int;
  v_dead   int := 0;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;
  SELECT count(DISTINCT id), count(DISTINCT id) FILTER (WHERE retry_count < 0),
    array_agg(ROW(kind, rule, rule_limit, v_locked.now, first_push, score, retry_count, recoveries, id,
      coalesce(nullif(error, ''), p_error), data, meta)::{schema}.arrival)
  INTO v_reply.handled, v_fresh, v_taken
  FROM {schema}.remove_jobs(v_locked.shard, coalesce(p_ids, ARRAY(
    SELECT j.id FROM {schema}.jobs j
    WHERE j.shard = v_locked.shard AND j.retry_count >= 0
    ORDER BY j.perform_at, j.id LIMIT p_limit)));
  v_reply.more := p_ids IS NULL AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = v_locked.shard AND j.retry_count >= 0);
  IF v_reply.handled = 0 THEN
    RETURN v_reply;
  END IF;
  IF p_error IS NOT NULL THEN
    v_dead := {schema}.bury(v_locked.shard, v_taken);
  END IF;
  PERFORM {schema}.change_counts(v_locked.shard, -v_fresh, v_fresh - v_reply.handled, v_dead);
  RETURN v_reply;
END {$};
