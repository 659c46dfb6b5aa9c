-- Replaces the bytes of a dead letter's payload (ports.Operator.Edit). If the dead letter has a
-- payload with the new bytes already, both merge by the queue's rule.
CREATE FUNCTION {schema}.step_edit(p_queue text, p_index int, p_now bigint, p_id text, p_old bytea, p_new bytea)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_old    record;
  a        {schema}.inbox;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;
  DELETE FROM {schema}.dead_letter_payloads p
  WHERE p.shard = v_locked.shard AND p.id = p_id AND p.digest = sha256(p_old)
  RETURNING p.score, p.meta INTO v_old;
  IF NOT FOUND THEN
    RETURN v_reply;
  END IF;

  a := {schema}.new_arrival(v_locked.shard, 'buried', p_id);
  a.score := v_old.score; a.data := p_new; a.meta := v_old.meta;
  PERFORM {schema}.merge_dead_payloads(v_locked.shard, ARRAY[a]);
  UPDATE {schema}.dead_letters d SET changed_at = v_locked.now WHERE d.shard = v_locked.shard AND d.id = p_id;
  v_reply.handled := 1;
  RETURN v_reply;
END {$};
