-- Takes payloads out of the morgue (ports.Operator.Revive, Purge): all of p_whole_ids, and single
-- payloads given by p_ids and p_data; or, if p_whole_ids is NULL, all of the first p_limit dead
-- letters by time that changed before p_before. They go back to the queue if p_revive, else they
-- are deleted.
CREATE FUNCTION {schema}.step_revive_or_purge(p_queue text, p_index int, p_now bigint, p_whole_ids text[], p_ids text[], p_data bytea[],
  p_before bigint, p_limit int, p_revive boolean)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_taken  {schema}.arrival[];
  v_ids    text[];
  v_gone   int;
  v_merged record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;
  WITH whole AS (
    DELETE FROM {schema}.dead_letter_payloads p
    WHERE p.shard = v_locked.shard AND p.id = ANY (coalesce(p_whole_ids, ARRAY(
      SELECT d.id FROM {schema}.dead_letters d
      WHERE d.shard = v_locked.shard AND d.changed_at < p_before
      ORDER BY d.changed_at, d.id LIMIT p_limit)))
    RETURNING p.*
  ), parts AS (
    DELETE FROM {schema}.dead_letter_payloads p USING unnest(p_ids, p_data) m (id, data)
    WHERE p.shard = v_locked.shard AND p.id = m.id AND p.digest = sha256(m.data)
    RETURNING p.*
  )
  SELECT array_agg(DISTINCT t.id), array_agg(ROW('revived', 0, 0, v_locked.now, v_locked.now, t.score, -1, 0, t.id, '', t.data, t.meta)::{schema}.arrival)
  INTO v_ids, v_taken
  FROM (SELECT * FROM whole UNION ALL SELECT * FROM parts) t;
  v_reply.more := p_whole_ids IS NULL AND EXISTS (
    SELECT FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.changed_at < p_before AND d.id <> ALL (coalesce(v_ids, '{}')));
  IF v_ids IS NULL THEN
    RETURN v_reply;
  END IF;
  v_reply.handled := cardinality(v_ids);
  DELETE FROM {schema}.dead_letters d
  WHERE d.shard = v_locked.shard AND d.id = ANY (v_ids)
    AND NOT EXISTS (SELECT FROM {schema}.dead_letter_payloads p WHERE p.shard = v_locked.shard AND p.id = d.id);
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  IF p_revive THEN
    SELECT * INTO v_merged FROM {schema}.merge(v_locked.shard, v_taken);
    v_reply.earliest := v_merged.earliest;
    PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
    PERFORM {schema}.change_counts(v_locked.shard, v_merged.fresh, v_merged.retrying, -v_gone);
  ELSE
    PERFORM {schema}.change_counts(v_locked.shard, 0, 0, -v_gone);
  END IF;
  RETURN v_reply;
END {$};
