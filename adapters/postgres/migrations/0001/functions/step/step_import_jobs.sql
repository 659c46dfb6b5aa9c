-- Puts jobs of another queue into this one (ports.Operator.Import): p_jobs, a JSON array of objects
-- with columns of the inbox, the nth with the payloads whose p_places is n. lock_target has the
-- other arguments. A held job, or one with more failures than the queued one, merges like a job put
-- back, any other one like a push by Earliest (core.MergeImport). A push that comes meanwhile makes
-- a fresh job only, so neither differs.
CREATE FUNCTION {schema}.step_import_jobs(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_only_paused boolean,
  p_jobs json, p_places int[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_jobs     {schema}.inbox[];
  a          {schema}.inbox;
  v_queued   record;
  v_held     boolean;
  v_wins     boolean;
  v_arrivals {schema}.inbox[]; -- array_append adds to it in place
  v_merged   record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_target(p_queue, p_index, p_now, p_shards, p_generation, p_only_paused);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_reply.status <> 'ok' OR cardinality(p_places) = 0 THEN
    RETURN v_reply;
  END IF;

  v_jobs := ARRAY(SELECT j FROM json_populate_recordset(NULL::{schema}.inbox, p_jobs) j);
  FOR n IN 1..cardinality(v_jobs) LOOP
    a := v_jobs[n];
    SELECT coalesce(max(q.retry_count), -1) AS retry_count, coalesce(bool_or(q.retry_count >= 0 AND q.perform_at = c_never), false) AS held
    INTO v_queued FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = a.id;
    v_held := a.retry_count >= 0 AND a.perform_at = c_never;
    v_wins := CASE WHEN v_held = v_queued.held THEN a.retry_count > v_queued.retry_count ELSE v_held END;

    a.kind := CASE WHEN v_wins THEN 'put_back' ELSE 'push' END;
    a.rule := CASE WHEN v_wins THEN c_keep ELSE c_earliest END;
    a.rule_limit := 0;
    a.first_push := least(a.first_push, v_locked.now);
    v_jobs[n] := a;
  END LOOP;

  FOR n IN 1..cardinality(p_places) LOOP
    a := v_jobs[p_places[n]];
    a.score := p_scores[n]; a.data := p_data[n]; a.meta := p_meta[n];
    v_arrivals := array_append(v_arrivals, a);
    IF a.kind = 'put_back' THEN -- the others are merged like a push onto it
      a.kind := 'push';
      a.rule := c_keep;
      v_jobs[p_places[n]] := a;
    END IF;
  END LOOP;

  SELECT * INTO v_merged FROM {schema}.merge(v_locked.shard, v_arrivals);
  v_reply.earliest := v_merged.earliest;
  PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
  PERFORM {schema}.change_counts(v_locked.shard, v_merged.fresh, v_merged.retrying, 0);
  v_reply.handled := cardinality(v_jobs);
  RETURN v_reply;
END {$};
