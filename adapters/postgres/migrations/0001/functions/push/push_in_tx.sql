-- Pushes entries in a caller's transaction: into the inbox, so that it waits for no other
-- transaction and none waits for it. The entries are a JSON array of {shard, id, data, meta, score,
-- at, in, urgent, tags, once, once_key}: data and meta in base64, the PerformAt either at, or in
-- microseconds from now, and once and once_key as in the inbox. An urgent one merges by Earliest. When the transaction commits, a wake-up for each shard in p_wake is sent through p_channel. status is
-- ok, unknown_queue, layout_mismatch, or of unfit_session.
CREATE FUNCTION {schema}.push_in_tx(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_entries json, p_channel text, p_wake int[], OUT status text, OUT now bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_first int;
BEGIN
  now := {schema}.clock(p_now);
  status := {schema}.unfit_session();
  IF status IS NOT NULL THEN
    RETURN;
  END IF;

  -- In the snapshot of the call; a change of the layout waits for older transactions.
  SELECT {schema}.first_shard(q.id) INTO v_first FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    status := {schema}.missing_layout(p_queue);
    RETURN;
  END IF;

  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    -- Such a snapshot may show a queue that has been forgotten since. Then this fails.
    PERFORM FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" FOR KEY SHARE;
  END IF;

  status := 'ok';
  INSERT INTO {schema}.inbox (shard, kind, rule, rule_limit, perform_at, first_push, score, id, data, meta, tags, once, once_key)
  SELECT v_first + e.shard, 'push', CASE WHEN e.urgent THEN 1 /* core.Earliest */ ELSE p_rule END, p_limit, coalesce(e.at, {schema}.later(push_in_tx.now, coalesce(e."in", 0))), push_in_tx.now,
    e.score, e.id, decode(e.data, 'base64'), decode(e.meta, 'base64'), coalesce(e.tags, ''), e.once, e.once_key
  FROM ROWS FROM (json_to_recordset(p_entries)
    AS (shard int, id text, data text, meta text, score double precision, at bigint, "in" bigint, urgent boolean, tags text, once bigint, once_key uuid)
  ) WITH ORDINALITY AS e (shard, id, data, meta, score, at, "in", urgent, tags, once, once_key, place)
  ORDER BY e.place;
  PERFORM pg_notify(p_channel, p_queue || '/' || w.index) FROM unnest(p_wake) AS w (index);
END {$};
