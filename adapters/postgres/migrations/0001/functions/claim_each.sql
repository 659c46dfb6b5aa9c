-- Claims due jobs one by one, those with several payloads or that must run alone, from p_from until
-- the PerformAt p_until. p_jobs and p_used are the jobs and bytes that the turn has claimed
-- already, and p_carried the payloads that it hands over. It ends at the budget, in front of a job that must run alone, or at one that a push has
-- locked or that is in the inbox by now: then missed is true.
CREATE FUNCTION {schema}.claim_each(p_shard int, p_from bigint, p_until bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_want int, p_per_job bigint, p_bytes bigint, p_inbox boolean, p_jobs int, p_used bigint, p_carried int,
  OUT ids text[], OUT fresh int, OUT retrying int, OUT missed boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  v_jobs     int := p_jobs;
  v_payloads int := p_jobs + p_carried;
  v_bytes    bigint := p_used;
  v_at       bigint := p_from;
  v_id       text := '';
  v_recoveries int;
  j          record;
  p          record;
BEGIN
  fresh := 0; retrying := 0; missed := false;
  WHILE v_jobs < p_want AND v_payloads < c_payloads LOOP
    SELECT q.perform_at, q.id, q.recoveries INTO v_at, v_id, v_recoveries FROM {schema}.jobs q
    WHERE q.shard = p_shard AND NOT q.parked AND (q.perform_at, q.id) > (v_at, v_id COLLATE "C") AND q.perform_at <= p_until
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = q.shard AND c.id = q.id) IS NULL
      AND CASE WHEN p_inbox THEN (
        SELECT i.shard FROM {schema}.inbox i WHERE i.shard = q.shard AND i.id = q.id AND i.kind IN ('push', 'put_back') LIMIT 1
      ) IS NULL ELSE true END
    ORDER BY q.perform_at, q.id LIMIT 1;
    EXIT WHEN NOT FOUND OR v_recoveries > 1 AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard);
    SELECT q.* INTO j FROM {schema}.jobs q
    WHERE q.shard = p_shard AND q.id = v_id COLLATE "C" AND q.perform_at <= p_now FOR UPDATE SKIP LOCKED;
    missed := NOT FOUND;
    EXIT WHEN missed;
    missed := EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.id = v_id COLLATE "C" AND i.kind IN ('push', 'put_back'));
    EXIT WHEN missed;

    -- The first payload of the turn always fits; what follows one that does not, never does.
    p := {schema}.take_payloads(p_shard, j.id, least(p_per_job, c_payloads - v_payloads)::int, p_bytes - v_bytes, v_payloads = 0);
    EXIT WHEN p.n = 0;
    INSERT INTO {schema}.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, size, id, node,
      owner, error, data, meta, more_scores, more_data, more_meta)
    VALUES (p_token, p_number, j.perform_at, j.first_push, p_now, p.scores[1], p_shard, j.retry_count, j.recoveries, p.size, j.id, p_node,
      p_owner, j.error, p.data[1], p.meta[1], p.scores[2:], p.data[2:], p.meta[2:]);
    ids := ids || j.id;
    v_jobs := v_jobs + 1; v_payloads := v_payloads + p.n; v_bytes := v_bytes + p.size;
    IF j.recoveries > 1 THEN
      UPDATE {schema}.shards s SET exceptional = true WHERE s.id = p_shard;
    END IF;
    EXIT WHEN p.stays;
    IF j.retry_count < 0 THEN
      fresh := fresh - 1;
    ELSE
      retrying := retrying - 1;
    END IF;
    EXIT WHEN j.recoveries > 1;
  END LOOP;
END {$};
