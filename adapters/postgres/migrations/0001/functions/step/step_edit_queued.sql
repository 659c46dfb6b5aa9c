-- Replaces the bytes of a queued job's payload (ports.Operator.Edit). If the job has a payload with
-- the new bytes already, both merge by the queue's rule.
CREATE FUNCTION {schema}.step_edit_queued(p_queue text, p_index int, p_now bigint, p_id text, p_old bytea, p_new bytea)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_rule   int;
  v_inline boolean; -- whether the payload is in the job's row
  v_others boolean; -- whether the job has others
  v_old    record;
  v_merged record;
  j        record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  -- It waits for pushes.
  SELECT q.score, q.data, q.meta INTO j FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN v_reply;
  END IF;

  v_inline := coalesce(j.data = p_old, false);
  IF v_inline THEN
    v_others := EXISTS (SELECT FROM {schema}.payloads p WHERE p.shard = v_locked.shard AND p.id = p_id);
    SELECT j.score, j.meta INTO v_old;
  ELSE
    DELETE FROM {schema}.payloads p WHERE p.shard = v_locked.shard AND p.id = p_id AND p.digest = sha256(p_old)
    RETURNING p.score, p.meta INTO v_old;
    IF NOT FOUND THEN
      RETURN v_reply;
    END IF;
    v_others := j.data IS NOT NULL OR EXISTS (SELECT FROM {schema}.payloads p WHERE p.shard = v_locked.shard AND p.id = p_id);
  END IF;
  v_reply.handled := 1;

  IF NOT v_others THEN -- no other payload to merge with
    UPDATE {schema}.jobs q SET score = v_old.score, data = p_new, meta = v_old.meta, has_more = false
    WHERE q.shard = v_locked.shard AND q.id = p_id;
    RETURN v_reply;
  END IF;

  IF v_inline THEN
    UPDATE {schema}.jobs q SET data = NULL, meta = NULL, has_more = true WHERE q.shard = v_locked.shard AND q.id = p_id;
  ELSE
    UPDATE {schema}.jobs q SET has_more = EXISTS (SELECT FROM {schema}.payloads p WHERE p.shard = v_locked.shard AND p.id = p_id)
    WHERE q.shard = v_locked.shard AND q.id = p_id AND q.data IS NOT NULL;
  END IF;
  v_rule := (SELECT s.merge_rule FROM {schema}.shards s WHERE s.id = v_locked.shard);
  SELECT * INTO v_merged FROM {schema}.merge_payload(v_locked.shard, p_id, v_rule, v_old.score, p_new, v_old.meta) m;
  PERFORM {schema}.count_superseded(v_locked.shard, v_merged.superseded);
  RETURN v_reply;
END {$};
