-- Puts records of what became of ids, or marks, of another queue into a shard (ports.Operator.Import):
-- p_past, a JSON array of objects of the type past. Of two records of an id the later one stays, and no
-- mark is lowered (core.ImportPast, core.ImportMark). p_age is that of a shard that has kept no record.
-- lock_target has the other arguments.
CREATE FUNCTION {schema}.step_import_past(p_queue text, p_index int, p_now bigint,
  p_shards int, p_generation bigint, p_only_paused boolean, p_past json, p_age bigint)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS {$}
DECLARE
  v_locked record;
  v_reply  {schema}.step_reply;
  v_past   {schema}.past[];
  v_ids    text[];
  v_before record;
  v_after  record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_target(p_queue, p_index, p_now, p_shards, p_generation, p_only_paused);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  v_past := ARRAY(SELECT p FROM json_populate_recordset(NULL::{schema}.past, p_past) p);
  IF v_reply.status <> 'ok' OR cardinality(v_past) = 0 THEN
    RETURN v_reply;
  END IF;

  -- The present records are locked, so that no caller's transaction replaces one meanwhile.
  v_ids := ARRAY(SELECT u.id FROM unnest(v_past) u);
  PERFORM FROM {schema}.past p WHERE p.shard = v_locked.shard AND p.id = ANY (v_ids) ORDER BY p.id, p.mark FOR UPDATE;
  SELECT count(*) AS records, coalesce(sum(octet_length(p.result)), 0) AS bytes INTO v_before
  FROM {schema}.past p WHERE p.shard = v_locked.shard AND p.id = ANY (v_ids);

  -- Marks, those of records that go included.
  INSERT INTO {schema}.past AS p (shard, id, mark, raises, done_at, started, took, score, payloads, attempt, node)
  SELECT v_locked.shard, r.id, true, true, r.done_at, 0, 0, r.score, 0, 0, ''
  FROM (
    SELECT u.id, u.done_at, u.score FROM unnest(v_past) u WHERE u.mark
    UNION ALL
    SELECT u.id, least(u.done_at, e.done_at), CASE WHEN u.done_at > e.done_at THEN e.score ELSE u.score END
    FROM unnest(v_past) u
    JOIN {schema}.past e ON e.shard = v_locked.shard AND e.id = u.id AND NOT e.mark
    WHERE NOT u.mark AND CASE WHEN u.done_at > e.done_at
      THEN e.raises AND (NOT u.raises OR e.score > u.score)
      ELSE u.raises AND (NOT e.raises OR u.score > e.score)
    END
  ) r
  ORDER BY r.id
  ON CONFLICT (shard, id, mark) DO UPDATE SET
    done_at = greatest(p.done_at, excluded.done_at), score = greatest(p.score, excluded.score);

  INSERT INTO {schema}.past AS p (shard, id, done_at, started, took, score, raises, payloads, attempt, node, result)
  SELECT v_locked.shard, u.id, u.done_at, u.started, u.took, u.score, u.raises, u.payloads, u.attempt, u.node, u.result
  FROM unnest(v_past) u
  WHERE NOT u.mark
  ORDER BY u.id
  ON CONFLICT (shard, id, mark) DO UPDATE SET
    done_at = excluded.done_at, started = excluded.started, took = excluded.took, score = excluded.score,
    raises = excluded.raises,
    payloads = excluded.payloads, attempt = excluded.attempt, node = excluded.node, result = excluded.result
  WHERE excluded.done_at > p.done_at;

  SELECT count(*) AS records, coalesce(sum(octet_length(p.result)), 0) AS bytes INTO v_after
  FROM {schema}.past p WHERE p.shard = v_locked.shard AND p.id = ANY (v_ids);
  UPDATE {schema}.shards s SET -- not by count_changes: the next turn is to see them
    past = s.past + v_after.records - v_before.records,
    past_bytes = s.past_bytes + v_after.bytes - v_before.bytes,
    past_age = CASE s.past_age WHEN 0 THEN p_age ELSE s.past_age END
  WHERE s.id = v_locked.shard;

  v_reply.handled := cardinality(v_past);
  RETURN v_reply;
END {$};
