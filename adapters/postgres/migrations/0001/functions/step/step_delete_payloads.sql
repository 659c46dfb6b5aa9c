-- Removes payloads from queued jobs (ports.Operator.Delete): from the jobs p_ids that were first
-- pushed before p_before, 0 for any, and that have failed if p_failed is set, or are held if p_held
-- is set; from the nth of them the next p_counts[n] of p_data, if they have the scores of p_scores.
-- A job without payloads is removed. A job that has failed and loses its first payload becomes
-- fresh and due, and one that has a slot becomes due without it (core.State.WithoutFirst).
CREATE FUNCTION {schema}.step_delete_payloads(p_queue text, p_index int, p_now bigint, p_ids text[], p_before bigint, p_failed boolean, p_held boolean,
  p_counts int[], p_scores double precision[], p_data bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_never  CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_locked record;
  v_reply  {schema}.step_reply;
  v_place  int := 0;
  v_scores double precision[];
  v_data   bytea[];
  j        record;
  v_inline boolean; -- whether the payload in the job's row goes
  v_places tid[];   -- those of the table payloads that go
  v_more   boolean;
  v_first  bytea;   -- the first payload of a job that has failed or has a slot
  v_rest   boolean; -- whether it goes, and others stay
  v_fresh  int := 0;
  v_gone   int := 0;
  v_eased  int := 0; -- how many have become fresh
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  -- It waits for pushes, in order of id.
  PERFORM FROM (SELECT FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = ANY (p_ids) ORDER BY q.id FOR UPDATE) l;

  FOR n IN 1..cardinality(p_ids) LOOP
    v_scores := p_scores[v_place + 1 : v_place + p_counts[n]];
    v_data := p_data[v_place + 1 : v_place + p_counts[n]];
    v_place := v_place + p_counts[n];
    SELECT q.perform_at, q.retry_count, q.first_push, q.slot, q.score, q.data INTO j FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = p_ids[n];
    CONTINUE WHEN NOT FOUND OR p_before > 0 AND j.first_push >= p_before OR p_failed AND j.retry_count < 0
      OR p_held AND (j.retry_count < 0 OR j.perform_at < c_never);

    v_inline := EXISTS (SELECT FROM unnest(v_scores, v_data) u (score, data) WHERE u.data = j.data AND u.score = j.score);
    v_places := ARRAY(
      SELECT k.place FROM unnest(v_scores, v_data) u (score, data), LATERAL (
        SELECT p.ctid AS place FROM {schema}.payloads p
        WHERE p.shard = v_locked.shard AND p.id = p_ids[n] AND p.digest = sha256(u.data) AND p.score = u.score OFFSET 0
      ) k);
    CONTINUE WHEN NOT v_inline AND cardinality(v_places) = 0;

    v_reply.handled := v_reply.handled + 1;
    v_first := NULL;
    IF j.retry_count >= 0 OR j.slot IS NOT NULL THEN
      SELECT f.data INTO v_first FROM {schema}.payloads_of(v_locked.shard, p_ids[n], 1) f;
    END IF;

    DELETE FROM {schema}.payloads p WHERE p.ctid = ANY (v_places);
    v_more := EXISTS (SELECT FROM {schema}.payloads p WHERE p.shard = v_locked.shard AND p.id = p_ids[n]);
    IF (v_inline OR j.data IS NULL) AND NOT v_more THEN
      DELETE FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = p_ids[n];
      v_gone := v_gone + 1;
      v_fresh := v_fresh + (j.retry_count < 0)::int;
    ELSE
      UPDATE {schema}.jobs q SET has_more = v_more, data = CASE WHEN NOT v_inline THEN q.data END, meta = CASE WHEN NOT v_inline THEN q.meta END
      WHERE q.shard = v_locked.shard AND q.id = p_ids[n];
      v_rest := (j.retry_count >= 0 OR j.slot IS NOT NULL) AND v_first IS DISTINCT FROM (SELECT f.data FROM {schema}.payloads_of(v_locked.shard, p_ids[n], 1) f);
      IF v_rest THEN
        UPDATE {schema}.jobs q SET retry_count = -1, recoveries = CASE WHEN j.retry_count < 0 THEN q.recoveries ELSE 0 END,
          slot = NULL, perform_at = least(q.perform_at, v_locked.now)
        WHERE q.shard = v_locked.shard AND q.id = p_ids[n];
        v_reply.earliest := v_locked.now;
        v_eased := v_eased + (j.retry_count >= 0)::int;
      END IF;
    END IF;
  END LOOP;

  IF v_reply.earliest IS NOT NULL THEN
    PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
  END IF;
  PERFORM {schema}.change_counts(v_locked.shard, v_eased - v_fresh, v_fresh - v_gone - v_eased, 0);
  RETURN v_reply;
END {$};
