-- Puts jobs of another queue into this one (ports.Operator.Import): the nth has p_ids[n],
-- p_times[n] as its PerformAt, p_firsts[n], p_retries[n], p_recoveries[n] and p_errors[n] with the
-- tags (see unite_tags), and the payloads whose p_places is n. lock_target has the other arguments.
-- A held job, or one with more failures than the queued one, merges like a job put back, any other
-- one like a push by Earliest (core.MergeImport). A push that comes meanwhile makes a fresh job
-- only, so neither differs.
CREATE FUNCTION {schema}.step_import_jobs(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_only_paused boolean, p_ids text[],
  p_times bigint[], p_firsts bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_places int[], p_scores double precision[],
  p_data bytea[], p_meta bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_arrivals {schema}.arrival[];
  v_merged   record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_target(p_queue, p_index, p_now, p_shards, p_generation, p_only_paused);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_reply.status <> 'ok' OR cardinality(p_ids) = 0 THEN
    RETURN v_reply;
  END IF;

  v_arrivals := ARRAY(
    SELECT ROW((CASE WHEN j.wins THEN 'put_back' ELSE 'push' END)::{schema}.arrival_kind, CASE WHEN j.wins THEN c_keep ELSE c_earliest END, 0,
      p_times[u.place], least(p_firsts[u.place], v_locked.now), u.score, p_retries[u.place], p_recoveries[u.place], p_ids[u.place], p_errors[u.place], u.data, u.meta,
      NULL)::{schema}.arrival
    FROM unnest(p_places, p_scores, p_data, p_meta) WITH ORDINALITY u (place, score, data, meta, nth) CROSS JOIN LATERAL (
      SELECT CASE WHEN h.coming = h.queued THEN p_retries[u.place] > h.retry_count ELSE h.coming END AS wins
      FROM (
        SELECT p_retries[u.place] >= 0 AND p_times[u.place] = c_never AS coming,
          coalesce(max(q.retry_count), -1) AS retry_count, coalesce(bool_or(q.retry_count >= 0 AND q.perform_at = c_never), false) AS queued
        FROM {schema}.jobs q WHERE q.shard = v_locked.shard AND q.id = p_ids[u.place]
      ) h
    ) j ORDER BY u.nth);

  SELECT * INTO v_merged FROM {schema}.merge(v_locked.shard, v_arrivals);
  v_reply.earliest := v_merged.earliest;
  PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
  PERFORM {schema}.change_counts(v_locked.shard, v_merged.fresh, v_merged.retrying, 0);
  v_reply.handled := cardinality(p_ids);
  RETURN v_reply;
END {$};
