-- Deletes a queue that holds nothing, not even a schedule, and that no server works
-- (ports.Operator.Forget). status is ok, unknown_queue, not_empty or lease_held; index, owner and
-- remaining name the place. A push locks the table of queues until its transaction ends, so no push
-- to a deleted queue can be under way. A push in a caller's transaction that stays open makes this
-- fail.
CREATE FUNCTION {schema}.forget(p_queue text, p_now bigint,
  OUT status text, OUT index int, OUT owner text, OUT remaining bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '200ms' AS {$}
DECLARE
  v_queue int;
  v_from  int;
  v_to    int;
BEGIN
  LOCK TABLE {schema}.queues IN ACCESS EXCLUSIVE MODE;
  SELECT q.id, {schema}.first_shard(q.id), {schema}.first_shard(q.id) + q.shards - 1
  INTO v_queue, v_from, v_to FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;

  PERFORM FROM {schema}.shards s WHERE s.id BETWEEN v_from AND v_to ORDER BY s.id FOR UPDATE;
  SELECT 'not_empty', s.index INTO status, index FROM {schema}.shards s
  WHERE s.id BETWEEN v_from AND v_to AND (
    EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.dead_letters d WHERE d.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.schedules t WHERE t.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.quarantine x WHERE x.shard = s.id)
    OR EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.kind NOT IN ('early', 'freed')))
  ORDER BY s.id LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;

  SELECT 'lease_held', s.index, l.owner, {schema}.remaining(l.expires, l.ttl, {schema}.clock(p_now)) INTO status, index, owner, remaining
  FROM {schema}.shards s JOIN {schema}.leases l ON l.shard = s.id
  WHERE s.id BETWEEN v_from AND v_to AND l.held AND {schema}.remaining(l.expires, l.ttl, {schema}.clock(p_now)) > 0
  ORDER BY s.id LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;

  DELETE FROM {schema}.turn_log t WHERE t.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.dead_groups g WHERE g.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.schedule_names n WHERE n.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.count_changes t WHERE t.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.inbox i WHERE i.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.past p WHERE p.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.once o WHERE o.shard BETWEEN v_from AND v_to;
  DELETE FROM {schema}.minute_records h WHERE h.queue = v_queue;
  DELETE FROM {schema}.day_records d WHERE d.queue = v_queue;
  DELETE FROM {schema}.permits p WHERE p.queue = v_queue;
  DELETE FROM {schema}.limiters l WHERE l.queue = v_queue;
  DELETE FROM {schema}.tracked t WHERE t.queue = v_queue;
  DELETE FROM {schema}.shards s WHERE s.id BETWEEN v_from AND v_to;
  DELETE FROM {schema}.queues q WHERE q.id = v_queue;
  status := 'ok';
END {$};
