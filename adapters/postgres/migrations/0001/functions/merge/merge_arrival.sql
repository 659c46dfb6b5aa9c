-- Merges one arrival into the queue by any merge rule (docs/rules.md 2). Returns the change of the
-- counts, the job's PerformAt, whether the job is new, whether it is due before the queued job was,
-- whether a queued job did not have the payload and has it now, and how many payloads the rule has
-- dropped.
CREATE FUNCTION {schema}.merge_arrival(p_shard int, p_merge_rule int, a {schema}.inbox,
  OUT fresh int, OUT retrying int, OUT due bigint, OUT is_new boolean, OUT earlier boolean, OUT added boolean, OUT superseded int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest; of a job put back, core.PutBack.Awaits
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_job      record;
BEGIN
  fresh := 0; retrying := 0; earlier := false; added := false; superseded := 0;
  INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta, failures, tags, slot)
  VALUES (p_shard, a.id, a.perform_at, a.first_push, a.retry_count, a.recoveries, false, a.score, a.score, a.data, a.meta, a.failures, a.tags, a.slot)
  ON CONFLICT (shard, id) DO UPDATE SET
    prior_retry_count = j.retry_count,
    parked = j.parked AND a.kind = 'push', -- the id of another arrival may be free; if not, claims skip it again
    recoveries = greatest(j.recoveries, excluded.recoveries),
    tags = {schema}.unite_tags(j.tags, excluded.tags)
  RETURNING j.perform_at, j.first_push, j.retry_count, j.slot, j.prior_retry_count INTO v_job;

  is_new := v_job.prior_retry_count IS NULL;
  due := v_job.perform_at;
  IF is_new THEN
    fresh := (a.retry_count < 0)::int;
    retrying := 1 - fresh;
    RETURN;
  END IF;

  IF a.kind <> 'push' AND NOT (a.kind = 'revived' AND v_job.retry_count >= 0 AND v_job.perform_at = c_never) THEN -- a held job stays held
    due := a.perform_at;
    IF a.kind = 'put_back' AND a.rule = c_earliest AND v_job.first_push <> a.first_push THEN
      due := least(due, v_job.perform_at); -- it was pushed since the claim
    END IF;
    fresh := (a.retry_count < 0)::int - (v_job.retry_count < 0)::int;
    retrying := - fresh;
    UPDATE {schema}.jobs q SET perform_at = due, first_push = least(v_job.first_push, a.first_push), retry_count = a.retry_count,
      failures = a.failures, slot = a.slot
    WHERE q.shard = p_shard AND q.id = a.id;
  ELSE
    IF v_job.retry_count < 0 AND v_job.slot IS NULL AND a.rule <> c_keep THEN
      due := {schema}.apply_push_rule(a.rule, a.rule_limit, v_job.perform_at, a.perform_at, least(v_job.first_push, a.first_push));
    END IF;
    IF due <> v_job.perform_at OR a.first_push < v_job.first_push THEN
      UPDATE {schema}.jobs q SET perform_at = due, first_push = least(v_job.first_push, a.first_push) WHERE q.shard = p_shard AND q.id = a.id;
    END IF;
  END IF;

  earlier := due < v_job.perform_at;
  SELECT m.added, m.superseded INTO added, superseded
  FROM {schema}.merge_payload(p_shard, a.id, p_merge_rule, a.score, a.data, a.meta) m;
END {$};
