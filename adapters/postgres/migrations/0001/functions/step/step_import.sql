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
  v_united text[]; -- ids of dead letters that stay as they are and have other payloads or tags now
  v_rule   int;
  v_superseded int;
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

  -- Dead letters that stay as they are only get payloads and tags.
  v_rule := {schema}.rule_of(v_locked.shard);
  IF v_rule <> 0 THEN
    SELECT array_agg(w.id) FILTER (WHERE w.changed), coalesce(sum(w.superseded), 0) INTO v_united, v_superseded FROM (
      SELECT p_ids[u.place] AS id, m.changed, m.superseded
      FROM unnest(p_places, p_scores, p_data, p_meta) WITH ORDINALITY u (place, score, data, meta, nth),
        LATERAL {schema}.merge_dead_payload(v_locked.shard, p_ids[u.place], v_rule, u.score, u.data, u.meta) m
      WHERE NOT v_later[u.place]
    ) w;
    PERFORM {schema}.count_superseded(v_locked.shard, v_superseded);
  ELSE
    WITH united AS (
      INSERT INTO {schema}.dead_letter_payloads AS p (shard, id, digest, score, data, meta)
      SELECT v_locked.shard, p_ids[u.place], sha256(u.data), u.score, u.data, u.meta
      FROM unnest(p_places, p_scores, p_data, p_meta) u (place, score, data, meta) WHERE NOT v_later[u.place]
      ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta WHERE excluded.score < p.score
      RETURNING p.id
    ) SELECT array_agg(w.id) INTO v_united FROM united w;
  END IF;

  WITH tagged AS (
    UPDATE {schema}.dead_letters d SET error = {schema}.unite_tags(d.error, u.error)
    FROM unnest(p_ids, p_errors) WITH ORDINALITY u (id, error, place)
    WHERE d.shard = v_locked.shard AND d.id = u.id COLLATE "C" AND NOT v_later[u.place] AND starts_with(u.error, chr(30))
      AND {schema}.unite_tags(d.error, u.error) <> d.error
    RETURNING d.id
  ) SELECT v_united || array_agg(t.id) INTO v_united FROM tagged t;

  v_buried := ARRAY(
    SELECT ROW('buried', 0, 0, p_times[u.place], p_times[u.place], u.score, -1, 0, p_ids[u.place], p_errors[u.place], u.data, u.meta,
      p_groups[u.place])::{schema}.arrival
    FROM unnest(p_places, p_scores, p_data, p_meta) WITH ORDINALITY u (place, score, data, meta, nth)
    WHERE v_later[u.place] ORDER BY u.nth);
  IF cardinality(v_buried) > 0 THEN
    PERFORM {schema}.change_counts(v_locked.shard, 0, 0, {schema}.bury(v_locked.shard, v_buried));
  END IF;
  v_reply.handled := (SELECT count(DISTINCT w) FROM unnest(v_united) w) + cardinality(array_positions(v_later, true));
  RETURN v_reply;
END {$};
