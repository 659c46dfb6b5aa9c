-- Changes schedules of a shard (ports.Calendar.ChangeSchedules). The nth change is of the schedule
-- p_ids[n] and p_names[n] with the revision p_revisions[n], -1 for any. p_records, with
-- p_new_revisions and p_ticks, has what is stored, NULL to remove the schedule; p_busy, with
-- p_busy_revisions and p_busy_ticks, has what is stored instead if the id has a job, NULL if that
-- makes no difference. The other arguments are entries, as in push_by_rule, each of the change
-- p_changes. If p_firing, nothing is changed in a paused queue.
-- status is ok, unknown_queue, no_such_shard or layout_mismatch. results has changed, busy, refused
-- or paused for each change. new, merged, superseded and earliest are those of push_by_rule, and
-- head is the next tick of the shard, NULL for none.
CREATE FUNCTION {schema}.change_schedules(p_queue text, p_index int, p_shards int, p_generation bigint, p_now bigint, p_firing boolean,
  p_ids text[], p_names text[], p_revisions bigint[], p_records text[], p_new_revisions bigint[], p_ticks bigint[],
  p_busy text[], p_busy_revisions bigint[], p_busy_ticks bigint[],
  p_changes int[], p_at bigint[], p_delay bigint[], p_scores double precision[], p_data bytea[], p_meta bytea[], p_urgent boolean[], p_tags text[],
  OUT status text, OUT now bigint, OUT results text[], OUT new bigint, OUT merged bigint, OUT superseded bigint,
  OUT earliest bigint, OUT head bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
#variable_conflict use_column
DECLARE
  c_any CONSTANT bigint := -1; -- ports.AnyRevision
  v_shard    int;
  v_paused   boolean;
  c          record;
  v_revision bigint;
  v_exists   boolean;
  v_queued   boolean;         -- whether the table jobs has a job of the id
  v_busy     boolean;
  v_pushed   text := '';      -- the last id that is pushed
  v_absent   bigint := 0;     -- ids that are pushed and had no queued job
  v_by_state boolean := false; -- whether a change was applied since its id had no job
BEGIN
  -- It comes before the lock, since Forget locks the table of queues first.
  IF NOT EXISTS (
    SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation
  ) THEN
    status := {schema}.missing_layout(p_queue);
    now := {schema}.clock(p_now);
    RETURN;
  END IF;
  SELECT l.status, l.shard, l.now INTO status, v_shard, now FROM {schema}.lock_shard(p_queue, p_index, p_now) l;
  IF status <> 'ok' THEN
    RETURN;
  END IF;
  results := array_fill('refused'::text, ARRAY[cardinality(p_ids)]);
  new := 0; merged := 0; superseded := 0;
  v_paused := (SELECT s.paused FROM {schema}.shards s WHERE s.id = v_shard);
  IF v_paused AND p_firing THEN
    results := array_fill('paused'::text, ARRAY[cardinality(p_ids)]);
    RETURN;
  END IF;

  -- In the order in which jobs are locked; the changes of an id stay in theirs.
  FOR c IN
    SELECT u.*, p_changes IS NOT NULL AND u.nth = ANY (p_changes) AS pushes
    FROM unnest(p_ids, p_names, p_revisions, p_records, p_new_revisions, p_ticks, p_busy, p_busy_revisions, p_busy_ticks)
      WITH ORDINALITY u (id, name, revision, record, new_revision, tick, busy, busy_revision, busy_tick, nth)
    ORDER BY u.id COLLATE "C", u.nth
  LOOP
    SELECT t.revision INTO v_revision FROM {schema}.schedules t
    WHERE t.shard = v_shard AND t.id = c.id COLLATE "C" AND t.name = c.name COLLATE "C";
    v_exists := FOUND;
    CONTINUE WHEN c.revision <> coalesce(v_revision, 0) AND NOT (c.revision = c_any AND v_exists);
    results[c.nth] := 'changed';
    IF c.record IS NULL THEN
      DELETE FROM {schema}.schedules t WHERE t.shard = v_shard AND t.id = c.id COLLATE "C" AND t.name = c.name COLLATE "C";
      IF v_exists THEN
        PERFORM {schema}.count_schedules(v_shard, c.name, -1);
      END IF;
      CONTINUE;
    END IF;

    IF c.pushes OR c.busy IS NOT NULL THEN
      SELECT j.queued, j.queued OR c.id = v_pushed
        OR EXISTS (SELECT FROM {schema}.claimed k WHERE k.shard = v_shard AND k.id = c.id COLLATE "C")
        OR EXISTS (SELECT FROM {schema}.inbox i
          WHERE i.shard + 0 = v_shard AND i.id = c.id COLLATE "C" AND i.kind IN ('push', 'put_back'))
      INTO v_queued, v_busy
      FROM (SELECT EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = v_shard AND j.id = c.id COLLATE "C")) j (queued);
    END IF;
    IF c.busy IS NOT NULL AND v_busy THEN
      results[c.nth] := 'busy';
      c.record := c.busy; c.new_revision := c.busy_revision; c.tick := c.busy_tick;
    ELSIF c.pushes THEN
      v_absent := v_absent + (NOT v_queued AND c.id <> v_pushed)::int;
      v_by_state := v_by_state OR c.busy IS NOT NULL;
      v_pushed := c.id;
    END IF;
    INSERT INTO {schema}.schedules AS t (shard, id, name, tick, revision, record)
    VALUES (v_shard, c.id, c.name, c.tick, c.new_revision, c.record::json)
    ON CONFLICT (shard, id, name) DO UPDATE SET tick = excluded.tick, revision = excluded.revision, record = excluded.record;
    IF NOT v_exists THEN
      PERFORM {schema}.count_schedules(v_shard, c.name, 1);
    END IF;
  END LOOP;

  IF v_pushed <> '' THEN
    SELECT max(r.new), max(r.merged), max(r.superseded), min(r.earliest) INTO new, merged, superseded, earliest FROM (
      SELECT array_agg(p_index ORDER BY e.nth) AS index, array_agg(e.id ORDER BY e.nth) AS ids,
        array_agg(e.at ORDER BY e.nth) AS at, array_agg(e.delay ORDER BY e.nth) AS delay,
        array_agg(e.score ORDER BY e.nth) AS scores, array_agg(e.data ORDER BY e.nth) AS data, array_agg(e.meta ORDER BY e.nth) AS meta,
        array_agg(e.urgent ORDER BY e.nth) AS urgent, array_agg(e.tags ORDER BY e.nth) AS tags
      FROM (
        SELECT u.*, p_ids[u.change] AS id, row_number() OVER (ORDER BY p_ids[u.change] COLLATE "C", u.place) AS nth
        FROM unnest(p_changes, p_at, p_delay, p_scores, p_data, p_meta, p_urgent, p_tags)
          WITH ORDINALITY u (change, at, delay, score, data, meta, urgent, tags, place)
        WHERE results[u.change] = 'changed'
      ) e
    ) e, LATERAL {schema}.push_by_rule(p_queue, p_shards, p_generation, now, 0::smallint /* core.Keep */, 0,
      e.index, e.ids, e.at, e.delay, e.scores, e.data, e.meta, e.urgent, e.tags) r;
    -- Only a push can have made a job since. The repeat of the call sees it.
    IF v_by_state AND new < v_absent THEN
      RAISE EXCEPTION 'an id got a job while its schedule was changed' USING ERRCODE = 'serialization_failure';
    END IF;
  END IF;
  IF NOT v_paused THEN
    SELECT t.tick INTO head FROM {schema}.schedules t WHERE t.shard = v_shard AND t.tick IS NOT NULL
    ORDER BY t.tick, t.id, t.name LIMIT 1;
  END IF;
END {$};
