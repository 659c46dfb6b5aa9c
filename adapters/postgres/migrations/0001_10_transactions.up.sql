-- Pushing and settling in callers' transactions. They lock nothing but claimed rows that
-- they settle, and leave the rest to the inbox and the tallies.

-- Pushes entries: a JSON array of {shard, id, data, meta, score, at, in}, bytes in base64,
-- at or else in microseconds. status is unknownQueue or layoutMismatch of errors.go.
CREATE FUNCTION {schema}.push_inbox(p_queue text, p_shards int, p_generation bigint, p_now bigint, p_rule smallint, p_limit bigint,
  p_entries json, OUT status smallint, OUT now bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_base int;
BEGIN
  now := {schema}.clock(p_now);
  -- In the snapshot of the call; whoever changes a layout waits for older transactions.
  SELECT q.id * 16384 INTO v_base FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation;
  IF NOT FOUND THEN
    status := CASE {schema}.no_shard(p_queue) WHEN 1 THEN 1 ELSE 3 END;
    RETURN;
  END IF;
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    -- Such a snapshot may show a queue that has been forgotten since: this fails then.
    PERFORM FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" FOR KEY SHARE;
  END IF;
  status := 0;
  INSERT INTO {schema}.inbox (shard, kind, rule, rule_limit, perform_at, first_push, score, id, data, meta)
  SELECT v_base + e.shard, 'p', p_rule, p_limit, coalesce(e.at, {schema}.later(push_inbox.now, coalesce(e."in", 0))), push_inbox.now,
    e.score, e.id, decode(e.data, 'base64'), decode(e.meta, 'base64')
  FROM ROWS FROM (json_to_recordset(p_entries)
    AS (shard int, id text, data text, meta text, score double precision, at bigint, "in" bigint)
  ) WITH ORDINALITY AS e (shard, id, data, meta, score, at, "in", place)
  ORDER BY e.place;
END {$};

-- Settles claimed jobs of a shard, all or none: a JSON array of objects whose fields are
-- those of core.Settlement and its PutBack, except being dispositions by position. settled
-- is how many were claimed as they say; if not all, none is settled. It waits for another
-- transaction that settles one of them. status is unknownQueue or noSuchShard.
CREATE FUNCTION {schema}.settle_transacted(p_queue text, p_index int, p_now bigint, p_settle jsonb,
  OUT status smallint, OUT settled int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_shard int := {schema}.shard_number(p_queue, p_index);
  v_now   bigint := {schema}.clock(p_now);
BEGIN
  IF v_shard IS NULL THEN
    status := {schema}.no_shard(p_queue);
    RETURN;
  END IF;
  status := 0;
  SELECT count(DISTINCT l.id) INTO settled FROM (
    SELECT c.id FROM jsonb_to_recordset(p_settle) AS s (id text, token bigint, number bigint)
    JOIN {schema}.claimed c ON c.shard = v_shard AND c.id = s.id COLLATE "C" AND c.token = s.token AND c.number = s.number
    ORDER BY c.id FOR UPDATE OF c
  ) l;
  IF settled <> jsonb_array_length(p_settle) THEN
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM {schema}.claimed c
    USING ROWS FROM (jsonb_to_recordset(p_settle) AS (id text, rest int, "except" jsonb, same_time boolean, delay bigint,
      retry_count int, recoveries int, error text, bury_error text, processed boolean, failed boolean)
    ) WITH ORDINALITY AS s (id, rest, "except", same_time, delay, retry_count, recoveries, error, bury_error, processed, failed, place)
    WHERE c.shard = v_shard AND c.id = s.id COLLATE "C"
    RETURNING s.*, c.perform_at, c.first_push, ARRAY[c.score] || c.more_scores AS scores, ARRAY[c.data] || c.more_data AS data,
      ARRAY[c.meta] || c.more_meta AS meta
  ), tallied AS (
    INSERT INTO {schema}.tallies (shard, fresh, retries, claimed, dead, processed, failed)
    SELECT v_shard, 0, 0, - count(*), 0, count(*) FILTER (WHERE g.processed), count(*) FILTER (WHERE g.failed)
    FROM gone g HAVING count(*) > 0
  )
  INSERT INTO {schema}.inbox (shard, kind, perform_at, first_push, score, retry_count, recoveries, id, error, data, meta)
  SELECT v_shard, CASE d.disposition WHEN 1 THEN 'r' ELSE 'd' END::"char",
    CASE WHEN d.disposition = 2 THEN v_now WHEN g.same_time THEN g.perform_at ELSE {schema}.later(v_now, g.delay) END,
    g.first_push, p.score, g.retry_count, g.recoveries, g.id, CASE d.disposition WHEN 1 THEN g.error ELSE g.bury_error END,
    p.data, p.meta
  FROM gone g, unnest(g.scores, g.data, g.meta) WITH ORDINALITY AS p (score, data, meta, position),
    LATERAL (SELECT coalesce((g."except" ->> (p.position - 1)::text)::int, g.rest) AS disposition) d
  WHERE d.disposition IN (1, 2)
  ORDER BY g.place, p.position;
END {$};
