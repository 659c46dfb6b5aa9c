-- Puts dead letters of another store into the morgue (ports.Operator.Import): the nth has p_ids[n],
-- p_times[n], p_errors[n] with the tags (see unite_tags) and p_groups[n], and the payloads whose
-- p_places is n. lock_target has the other arguments.
CREATE FUNCTION {schema}.step_import(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_only_paused boolean, p_ids text[],
  p_times bigint[], p_errors text[], p_groups text[], p_places int[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_later  boolean[]; -- for each, whether it is new, or has changed later than the stored one
  v_buried {schema}.arrival[];
  v_kept   {schema}.arrival[]; -- of dead letters that stay as they are and only get payloads and tags
  v_united text[]; -- ids of those that have other payloads or tags now
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_target(p_queue, p_index, p_now, p_shards, p_generation, p_only_paused);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_reply.status <> 'ok' THEN
    RETURN v_reply;
  END IF;
  v_later := ARRAY(
    SELECT d.changed_at IS NULL OR u.at > d.changed_at
    FROM unnest(p_ids, p_times) WITH ORDINALITY u (id, at, place) LEFT JOIN LATERAL (
      SELECT l.changed_at FROM {schema}.dead_letters l WHERE l.shard = v_locked.shard AND l.id = u.id
    ) d ON true ORDER BY u.place);

  SELECT array_agg(a.arrival ORDER BY a.nth) FILTER (WHERE a.later), array_agg(a.arrival ORDER BY a.nth) FILTER (WHERE NOT a.later)
  INTO v_buried, v_kept FROM (
    SELECT u.nth, v_later[u.place] AS later, ROW('buried', 0, 0, p_times[u.place], p_times[u.place], u.score, -1, 0, p_ids[u.place],
      p_errors[u.place], u.data, u.meta, p_groups[u.place])::{schema}.arrival AS arrival
    FROM unnest(p_places, p_scores, p_data, p_meta) WITH ORDINALITY u (place, score, data, meta, nth)
  ) a;
  IF v_kept IS NOT NULL THEN
    v_united := {schema}.merge_dead_payloads(v_locked.shard, v_kept);
  END IF;
  WITH tagged AS (
    UPDATE {schema}.dead_letters d SET error = {schema}.unite_tags(d.error, u.error)
    FROM unnest(p_ids, p_errors) WITH ORDINALITY u (id, error, place)
    WHERE d.shard = v_locked.shard AND d.id = u.id COLLATE "C" AND NOT v_later[u.place] AND starts_with(u.error, chr(30))
      AND {schema}.unite_tags(d.error, u.error) <> d.error
    RETURNING d.id
  ) SELECT v_united || array_agg(t.id) INTO v_united FROM tagged t;
  IF v_buried IS NOT NULL THEN
    PERFORM {schema}.change_counts(v_locked.shard, 0, 0, {schema}.bury(v_locked.shard, v_buried));
  END IF;
  v_reply.handled := (SELECT count(DISTINCT w) FROM unnest(v_united) w) + cardinality(array_positions(v_later, true));
  RETURN v_reply;
END {$};
