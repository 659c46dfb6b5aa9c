-- Puts dead letters of another store into the morgue (ports.Operator.Import): p_letters, a JSON array
-- of objects of the type dead_letters, the nth with the payloads whose p_places is n. lock_target
-- has the other arguments.
CREATE FUNCTION {schema}.step_import(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_only_paused boolean,
  p_letters json, p_places int[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  v_locked  record;
  v_reply   {schema}.step_reply;
  v_letters {schema}.dead_letters[];
  v_letter  {schema}.dead_letters;
  v_later   boolean[]; -- for each, whether it is new, or has changed later than the stored one
  a         {schema}.inbox;
  v_buried  {schema}.inbox[]; -- array_append adds to it in place
  v_kept    {schema}.inbox[]; -- of dead letters that stay as they are and only get payloads and tags
  v_united  text[]; -- ids of those that have other payloads or tags now
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_target(p_queue, p_index, p_now, p_shards, p_generation, p_only_paused);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_reply.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  v_letters := ARRAY(SELECT l FROM json_populate_recordset(NULL::{schema}.dead_letters, p_letters) l);
  v_later := ARRAY(
    SELECT d.changed_at IS NULL OR u.changed_at > d.changed_at
    FROM unnest(v_letters) WITH ORDINALITY u LEFT JOIN LATERAL (
      SELECT l.changed_at FROM {schema}.dead_letters l WHERE l.shard = v_locked.shard AND l.id = u.id
    ) d ON true ORDER BY u.ordinality);

  FOR n IN 1..cardinality(p_places) LOOP
    v_letter := v_letters[p_places[n]];
    v_letter.shard := v_locked.shard;
    a := {schema}.new_arrival(v_locked.shard, 'buried', v_letter.id);
    a.letter := v_letter;
    a.score := p_scores[n]; a.data := p_data[n]; a.meta := p_meta[n];
    IF v_later[p_places[n]] THEN
      v_buried := array_append(v_buried, a);
    ELSE
      v_kept := array_append(v_kept, a);
    END IF;
  END LOOP;

  IF v_kept IS NOT NULL THEN
    v_united := {schema}.merge_dead_payloads(v_locked.shard, v_kept);
  END IF;
  WITH tagged AS (
    UPDATE {schema}.dead_letters d SET tags = {schema}.unite_tags(d.tags, u.tags)
    FROM unnest(v_letters) WITH ORDINALITY u
    WHERE d.shard = v_locked.shard AND d.id = u.id AND NOT v_later[u.ordinality] AND u.tags <> ''
      AND {schema}.unite_tags(d.tags, u.tags) <> d.tags
    RETURNING d.id
  ) SELECT v_united || array_agg(t.id) INTO v_united FROM tagged t;
  IF v_buried IS NOT NULL THEN
    PERFORM {schema}.change_counts(v_locked.shard, 0, 0, {schema}.bury(v_locked.shard, v_buried));
  END IF;
  v_reply.handled := (SELECT count(DISTINCT w) FROM unnest(v_united) w) + cardinality(array_positions(v_later, true));
  RETURN v_reply;
END {$};
