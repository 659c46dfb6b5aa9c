-- Puts jobs of another queue into this one (ports.Operator.Import): the nth has p_ids[n],
-- p_times[n] as its PerformAt, p_firsts[n], p_retries[n], p_recoveries[n] and p_errors[n], and the
-- payloads whose p_places is n. The caller's layout has p_shards shards and p_generation. A job
-- with more failures than the queued one merges like a job put back, any other one like a push
-- (core.MergeImport). A push that comes meanwhile makes a fresh job only, so neither differs.
CREATE FUNCTION {schema}.step_import_jobs(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_ids text[],
  p_times bigint[], p_firsts bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_places int[], p_scores double precision[],
  p_data bytea[], p_meta bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_keep     CONSTANT smallint := 0; -- core.Keep
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_arrivals {schema}.arrival[];
  v_merged   record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF NOT EXISTS (
    SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation
  ) THEN
    v_reply.status := {schema}.missing_layout(p_queue);
  END IF;
  IF v_reply.status <> 'ok' OR cardinality(p_ids) = 0 THEN
    RETURN v_reply;
  END IF;
  v_arrivals := ARRAY(
    SELECT ROW((CASE WHEN p_retries[u.place] > coalesce(j.retry_count, -1) THEN 'put_back' ELSE 'push' END)::{schema}.arrival_kind, c_keep, 0,
      p_times[u.place], p_firsts[u.place], u.score, p_retries[u.place], p_recoveries[u.place], p_ids[u.place], p_errors[u.place], u.data, u.meta,
      NULL)::{schema}.arrival
    FROM unnest(p_places, p_scores, p_data, p_meta) WITH ORDINALITY u (place, score, data, meta, nth) LEFT JOIN LATERAL (
      SELECT q.retry_count FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = p_ids[u.place]
    ) j ON true ORDER BY u.nth);
  SELECT * INTO v_merged FROM {schema}.merge(v_locked.shard, v_arrivals);
  v_reply.earliest := v_merged.earliest;
  PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
  PERFORM {schema}.change_counts(v_locked.shard, v_merged.fresh, v_merged.retrying, 0);
  v_reply.handled := cardinality(p_ids);
  RETURN v_reply;
END {$};
