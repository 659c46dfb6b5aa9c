-- Pushes a payload for an id, from SQL in any language, in the transaction that calls it: into the
-- inbox, so that it waits for no other transaction and none waits for it. score is by default the
-- server's time in seconds, and the job may run from due on, by default at once. A role needs
-- nothing but EXECUTE, and USAGE of the schema: docs/guide/sql-pushes.md. It is stable: its
-- parameters keep their names, their order and their meaning.
CREATE FUNCTION {schema}.push_bytes(queue text, id text, data bytea,
  score double precision DEFAULT NULL, due timestamptz DEFAULT NULL, tags text[] DEFAULT NULL)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
#variable_conflict use_column
DECLARE
  c_wakes    CONSTANT int := hashtext({name});  -- of the advisory locks of wake-ups
  c_stamp    CONSTANT bytea := decode('0065766572790001', 'hex');  -- core/mergerule.go
  v_now      bigint := {schema}.clock(NULL);
  v_at       bigint := coalesce({schema}.instant_of(push_bytes.due), v_now);
  v_score    double precision := coalesce(push_bytes.score, v_now / 1e6::double precision) + 0;  -- -0 becomes 0
  v_data     bytea := push_bytes.data;
  v_tags     text := {schema}.tags_of(push_bytes.tags);
  v_queue_id int;
  v_shards   int;
  v_stamped  boolean;
  v_index    int;
  v_shard    int;
BEGIN
  PERFORM {schema}.check_entry(push_bytes.id, v_data, v_score);

  -- In the snapshot of the call; a change of the layout waits for older transactions.
  SELECT q.id, q.shards, q.same_push INTO v_queue_id, v_shards, v_stamped FROM {schema}.queues q
  WHERE q.name = push_bytes.queue COLLATE "C";
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the queue % does not exist', coalesce(quote_literal(push_bytes.queue), 'NULL')
      USING ERRCODE = 'undefined_object',
        HINT = 'Start a server of the queue, which declares it, or push a first job by: '
          || 'skein job push QUEUE ID --shards N';
  END IF;

  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    -- Such a snapshot may show a queue that has been forgotten since. Then this fails.
    PERFORM FROM {schema}.queues q WHERE q.id = v_queue_id FOR KEY SHARE;
  END IF;

  IF v_stamped THEN
    v_data := c_stamp || float8send(v_score) || v_data;
  END IF;
  v_index := {schema}.shard_of(push_bytes.id, v_shards);
  v_shard := {schema}.first_shard(v_queue_id) + v_index;
  INSERT INTO {schema}.inbox (shard, kind, perform_at, first_push, score, id, data, tags)
  VALUES (v_shard, 'push', v_at, v_now, v_score, push_bytes.id, v_data, v_tags);

  -- Commits that notify wait for one another. So of the open transactions that push to a shard, one
  -- notifies. The servers' next poll finds what another one commits after that one.
  IF pg_try_advisory_xact_lock(c_wakes, v_shard) THEN
    PERFORM pg_notify({channel}, push_bytes.queue || '/' || v_index);
  END IF;
END {$};
REVOKE ALL ON FUNCTION {schema}.push_bytes FROM PUBLIC;
