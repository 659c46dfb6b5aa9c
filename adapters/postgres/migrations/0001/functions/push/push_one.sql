-- Does what push does, for one entry, at a lower cost. p_at is its PerformAt, or -1 for p_delay
-- after now. perform_at is -1 unless the job is new or the rule may have moved its time. fresh is
-- whether the job is new, added whether a queued one did not have the payload. status is ok,
-- unknown_queue, layout_mismatch or by_rule, as of push. It is a function for the sake of its
-- lock_timeout: a statement that names tables waits for their locks before any part of it is run.
CREATE FUNCTION {schema}.push_one(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_index int, p_id text, p_at bigint, p_delay bigint, p_score double precision, p_data bytea, p_meta bytea,
  OUT status text, OUT now bigint, OUT perform_at bigint, OUT fresh boolean, OUT added boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '500ms' AS {$}
#variable_conflict use_column
DECLARE
  c_keep   CONSTANT smallint := 0;     -- core.Keep
  c_margin CONSTANT bigint := 500000;  -- half a second
  v_shard  int;
  v_merge  int;
  v_due    bigint;
  v_prior  int;
  v_more   boolean;
BEGIN
  -- In the snapshot of the call; a change of the layout waits for older transactions.
  SELECT {schema}.first_shard(q.id) + p_index, {schema}.clock(p_now), q.merge_rule INTO v_shard, now, v_merge FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    status := {schema}.missing_layout(p_queue);
    RETURN;
  END IF;
  IF v_merge <> 0 THEN
    status := 'by_rule';
    RETURN;
  END IF;
  status := 'ok';
  perform_at := -1;
  added := false;
  INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta, error)
  VALUES (v_shard, p_id, CASE WHEN p_at >= 0 THEN p_at ELSE {schema}.later(push_one.now, p_delay) END, push_one.now, -1, 0,
    false, p_score, p_score, p_data, p_meta, '')
  ON CONFLICT (shard, id) DO UPDATE SET
    prior_retry_count = j.retry_count,
    perform_at = CASE WHEN p_rule = c_keep OR j.retry_count >= 0 THEN j.perform_at ELSE
      {schema}.apply_push_rule(p_rule, p_limit, j.perform_at, excluded.perform_at, least(j.first_push, excluded.first_push)) END,
    first_push = least(j.first_push, excluded.first_push),
    low = least(j.low, excluded.low),
    has_more = j.has_more OR j.data <> excluded.data,
    score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
    meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
  RETURNING j.perform_at, j.prior_retry_count, j.has_more AND j.data IS DISTINCT FROM p_data INTO v_due, v_prior, v_more;
  fresh := v_prior IS NULL;
  IF fresh THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed) VALUES (v_shard, 1, 0, 0, 0, 0);
  ELSIF v_more THEN
    INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
    VALUES (v_shard, p_id, sha256(p_data), p_score, p_data, p_meta)
    ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta WHERE excluded.score < p.score
    RETURNING xmax = 0 INTO added; -- an existing row has the transaction that locked it
    added := coalesce(added, false);
  END IF;
  IF fresh OR p_rule <> c_keep THEN
    perform_at := v_due;
    -- A concurrent turn may raise the floor, to no later than a second ago.
    IF v_due < now - c_margin OR v_due < (SELECT l.floor FROM {schema}.leases l WHERE l.shard = v_shard) THEN
      INSERT INTO {schema}.inbox (shard, kind, perform_at) VALUES (v_shard, 'early', v_due);
    END IF;
  END IF;
END {$};
