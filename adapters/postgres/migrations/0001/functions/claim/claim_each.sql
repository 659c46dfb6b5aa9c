-- Claims due jobs one by one, from p_from until the PerformAt p_until: jobs with several payloads,
-- jobs that must run alone, and jobs for which something has come into the inbox since they were
-- chosen. p_jobs and p_used are the jobs and bytes that the turn has claimed already, and
-- p_carried the payloads that it hands over. What the inbox holds for a job is merged once the job
-- is locked. From then on no push adds to it, so that what transactions push meanwhile is not
-- overtaken, and does not hold the job up. It ends at the budget or in front of a job that must
-- run alone. A job that the merge has moved to a later time waits for its turn there. missed is
-- whether it has skipped a job that a push has locked, or for which the inbox holds more than one
-- step may merge. fresh and retrying are how the counts change, merged is whether something was
-- merged, even if nothing is claimed, and earliest is the earliest merged PerformAt.
CREATE FUNCTION {schema}.claim_each(p_shard int, p_from bigint, p_until bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_want int, p_per_job bigint, p_bytes bigint, p_inbox boolean, p_jobs int, p_used bigint, p_carried int,
  OUT ids text[], OUT fresh int, OUT retrying int, OUT missed boolean, OUT merged boolean, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_alone    CONSTANT int := 2; -- core.AloneRecoveries
  v_jobs     int := p_jobs;
  v_payloads int := p_jobs + p_carried;
  v_bytes    bigint := p_used;
  v_at       bigint := p_from;
  v_id       text := '';
  v_recoveries int;
  v_ready    boolean;
  v_missed   int := 0;
  v_rows     int;
  v_size     bigint;
  w          record;
  j          record;
  p          record;
BEGIN
  fresh := 0; retrying := 0; merged := false;
  SELECT b.payloads, b.bytes INTO v_rows, v_size FROM {schema}.shards s, {schema}.merge_bounds(s.ttl) b WHERE s.id = p_shard;
  WHILE v_jobs < p_want AND v_payloads < c_payloads AND v_missed <= p_want LOOP
    SELECT q.perform_at, q.id, q.recoveries INTO v_at, v_id, v_recoveries FROM {schema}.jobs q
    WHERE q.shard = p_shard AND NOT q.parked AND (q.perform_at, q.id) > (v_at, v_id COLLATE "C") AND q.perform_at <= p_until
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = q.shard AND c.id = q.id) IS NULL
      AND CASE WHEN p_inbox THEN (
        SELECT i.shard FROM {schema}.inbox i WHERE i.shard + 0 = q.shard AND i.id = q.id AND i.kind IN ('push', 'put_back') LIMIT 1
      ) IS NULL ELSE true END
    ORDER BY q.perform_at, q.id LIMIT 1;
    EXIT WHEN NOT FOUND OR v_recoveries >= c_alone AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard);
    SELECT q.* INTO j FROM {schema}.jobs q
    WHERE q.shard = p_shard AND q.id = v_id COLLATE "C" AND q.perform_at <= p_now FOR UPDATE SKIP LOCKED;
    v_ready := FOUND;
    IF v_ready THEN
      w := {schema}.merge_waiting(p_shard, v_id, v_rows, v_size, NOT merged);
      v_ready := w.finished;
    END IF;
    IF NOT v_ready THEN
      v_missed := v_missed + 1;
      EXIT WHEN v_recoveries >= c_alone; -- it is never overtaken
      CONTINUE;
    END IF;
    IF w.n > 0 THEN
      merged := true;
      v_rows := v_rows - w.n; v_size := v_size - w.size;
      fresh := fresh + w.fresh; retrying := retrying + w.retrying; earliest := least(earliest, w.earliest);
      SELECT q.* INTO j FROM {schema}.jobs q WHERE q.shard = p_shard AND q.id = v_id COLLATE "C" AND q.perform_at <= p_now;
      CONTINUE WHEN NOT FOUND OR j.perform_at > v_at;
      EXIT WHEN j.recoveries >= c_alone AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard);
    END IF;

    -- The first payload of the turn always fits. No payload fits behind one that does not.
    p := {schema}.take_payloads(p_shard, j.id, least(p_per_job, c_payloads - v_payloads)::int, p_bytes - v_bytes, v_payloads = 0, true);
    EXIT WHEN p.n = 0 AND p.stays;
    IF p.stays THEN
      fresh := fresh + (j.retry_count >= 0)::int; retrying := retrying - (j.retry_count >= 0)::int;
    ELSE
      fresh := fresh - (j.retry_count < 0)::int; retrying := retrying - (j.retry_count >= 0)::int;
    END IF;
    IF p.n = 0 THEN
      RAISE WARNING 'skein: the job % of shard % had no payload, and is removed', j.id, p_shard;
      CONTINUE;
    END IF;
    INSERT INTO {schema}.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, size, id, node,
      owner, failures, tags, slot, data, meta, more_scores, more_data, more_meta)
    VALUES (p_token, p_number, j.perform_at, j.first_push, p_now, p.scores[1], p_shard, j.retry_count, j.recoveries, p.size, j.id, p_node,
      p_owner, j.failures, j.tags, j.slot, p.data[1], p.meta[1], p.scores[2:], p.data[2:], p.meta[2:]);
    ids := ids || j.id;
    v_jobs := v_jobs + 1; v_payloads := v_payloads + p.n; v_bytes := v_bytes + p.size;
    IF j.recoveries >= c_alone THEN
      UPDATE {schema}.shards s SET exceptional = true WHERE s.id = p_shard;
    END IF;
    EXIT WHEN p.stays OR j.recoveries >= c_alone;
  END LOOP;
  missed := v_missed > 0;
END {$};
