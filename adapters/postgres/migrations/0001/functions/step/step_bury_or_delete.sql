-- Removes jobs from the queue (ports.Operator.Bury, Delete): those of p_ids that were first pushed
-- before p_before, 0 for any, and that have failed if p_failed is set, or are held if p_held is
-- set. They are buried in the group p_group, or deleted if p_group is NULL. The group's name is
-- also the text of the failure of jobs without one. If p_first is not NULL, only the first payload of each
-- job is removed, if it is the one in p_first. It ends at what one step may move.
CREATE FUNCTION {schema}.step_bury_or_delete(p_queue text, p_index int, p_now bigint, p_ids text[], p_before bigint,
  p_failed boolean, p_held boolean, p_group text, p_first bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_bytes    CONSTANT bigint := 8388608; -- core.MaxStepBytes
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_id       text;
  v_first    bytea;
  j          record;
  p          record;
  v_payloads int := 0;
  v_bytes    bigint := 0;
  v_letter   {schema}.dead_letters;
  a          {schema}.inbox;
  v_taken    {schema}.inbox[]; -- array_append adds to it in place, || with an array copies it
  v_fresh    int := 0; -- by how much the counts change
  v_retrying int := 0;
  v_dead     int := 0;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  -- It waits for pushes, in order of id.
  PERFORM FROM (SELECT FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = ANY (p_ids) ORDER BY q.id FOR UPDATE) l;

  v_reply.reached := 0;
  FOREACH v_id IN ARRAY p_ids LOOP
    SELECT q.perform_at, q.retry_count, q.first_push, q.recoveries, q.failures, q.tags, q.slot INTO j FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = v_id;
    IF FOUND AND (p_before = 0 OR j.first_push < p_before) AND (j.retry_count >= 0 OR NOT p_failed)
      AND (j.retry_count >= 0 AND j.perform_at = c_never OR NOT p_held) THEN
      IF p_first IS NOT NULL THEN
        SELECT f.data INTO v_first FROM {schema}.payloads_of(v_locked.shard, v_id, 1) f;
        IF v_first IS DISTINCT FROM p_first[v_reply.reached + 1] THEN
          v_reply.reached := v_reply.reached + 1;
          CONTINUE;
        END IF;
      END IF;

      p := {schema}.take_payloads(v_locked.shard, v_id, CASE WHEN p_first IS NULL THEN c_payloads - v_payloads ELSE least(1, c_payloads - v_payloads) END,
        c_bytes - v_bytes, v_payloads = 0, p_first IS NOT NULL AND j.retry_count >= 0);
      v_payloads := v_payloads + p.n; v_bytes := v_bytes + p.size;
      IF p_group IS NOT NULL THEN
        v_letter.shard := v_locked.shard;
        v_letter.id := v_id;
        v_letter.changed_at := v_locked.now;
        v_letter.failures := coalesce(j.failures, jsonb_build_array(jsonb_build_object('text', p_group)));
        v_letter.tags := j.tags;
        v_letter.grp := p_group;

        a := {schema}.new_arrival(v_locked.shard, 'buried', v_id);
        a.letter := v_letter;
        FOR m IN 1..p.n LOOP
          a.score := p.scores[m]; a.data := p.data[m]; a.meta := p.meta[m];
          v_taken := array_append(v_taken, a);
        END LOOP;
      END IF;

      EXIT WHEN p.stays AND (p_first IS NULL OR p.n = 0);
      v_reply.handled := v_reply.handled + 1;
      IF j.retry_count < 0 THEN
        v_fresh := v_fresh - (NOT p.stays)::int;
      ELSE
        v_fresh := v_fresh + p.stays::int;
        v_retrying := v_retrying - 1;
      END IF;

      IF p.stays AND (j.retry_count >= 0 OR j.slot IS NOT NULL) THEN -- core.State.WithoutFirst
        UPDATE {schema}.jobs q SET perform_at = least(q.perform_at, v_locked.now), slot = NULL,
          recoveries = CASE WHEN j.retry_count < 0 THEN q.recoveries ELSE 0 END
        WHERE q.shard = v_locked.shard AND q.id = v_id;
        v_reply.earliest := v_locked.now;
      END IF;
    END IF;
    v_reply.reached := v_reply.reached + 1;
  END LOOP;

  IF cardinality(v_taken) > 0 THEN
    v_dead := {schema}.bury(v_locked.shard, v_taken);
  END IF;
  IF v_reply.earliest IS NOT NULL THEN
    PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
  END IF;
  PERFORM {schema}.change_counts(v_locked.shard, v_fresh, v_retrying, v_dead);
  RETURN v_reply;
END {$};
