-- Merges one payload into a queued job by any merge rule. The caller has locked the job's row.
-- added is whether the job did not have the payload and has it now; superseded is how many
-- payloads the rule has dropped.
CREATE FUNCTION {schema}.merge_payload(p_shard int, p_id text, p_merge_rule int, p_score double precision, p_data bytea, p_meta bytea,
  OUT added boolean, OUT superseded int) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_job record;
  v_low record;
BEGIN
  added := false;
  superseded := 0;
  SELECT q.score, q.data, q.has_more INTO v_job FROM {schema}.jobs q WHERE q.shard = p_shard AND q.id = p_id;
  IF v_job.data = p_data THEN
    IF {schema}.replaces(p_merge_rule, p_score, v_job.score) THEN
      UPDATE {schema}.jobs q SET score = p_score, meta = p_meta, low = least(q.low, p_score) WHERE q.shard = p_shard AND q.id = p_id;
    END IF;
    RETURN;
  END IF;

  IF p_merge_rule = 1 AND NOT v_job.has_more THEN -- the usual case of a rule that keeps one
    superseded := 1;
    IF (p_score, p_data) > (v_job.score, v_job.data) THEN
      UPDATE {schema}.jobs q SET score = p_score, data = p_data, meta = p_meta, low = p_score WHERE q.shard = p_shard AND q.id = p_id;
      added := true;
    END IF;
    RETURN;
  END IF;

  INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
  VALUES (p_shard, p_id, sha256(p_data), p_score, p_data, p_meta)
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE {schema}.replaces(p_merge_rule, excluded.score, p.score)
  RETURNING xmax = 0 INTO added; -- an existing row has the transaction that locked it
  added := coalesce(added, false);
  UPDATE {schema}.jobs q SET has_more = true, low = least(q.low, p_score) WHERE q.shard = p_shard AND q.id = p_id AND (NOT q.has_more OR p_score < q.low);
  IF NOT added OR p_merge_rule <= 0 OR p_merge_rule >= (v_job.data IS NOT NULL)::int + (
    SELECT count(*) FROM (SELECT FROM {schema}.payloads p WHERE p.shard = p_shard AND p.id = p_id LIMIT p_merge_rule + 1) most
  ) THEN
    RETURN;
  END IF;

  superseded := 1;
  SELECT x.ctid AS place, x.score, x.data, x.meta INTO v_low FROM {schema}.payloads x
  WHERE x.shard = p_shard AND x.id = p_id ORDER BY x.score, substr(x.data, 1, 256), x.data LIMIT 1;
  DELETE FROM {schema}.payloads p WHERE p.ctid = v_low.place;
  IF v_job.data IS NOT NULL AND (v_job.score, v_job.data) < (v_low.score, v_low.data) THEN
    UPDATE {schema}.jobs q SET score = v_low.score, data = v_low.data, meta = v_low.meta WHERE q.shard = p_shard AND q.id = p_id;
  ELSE
    added := v_low.data <> p_data;
  END IF;
  UPDATE {schema}.jobs q SET has_more = EXISTS (SELECT FROM {schema}.payloads p WHERE p.shard = p_shard AND p.id = p_id)
  WHERE q.shard = p_shard AND q.id = p_id AND q.data IS NOT NULL;
END {$};
