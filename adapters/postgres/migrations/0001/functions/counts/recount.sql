-- Counts what a shard holds, and corrects its counts, and those of its groups, by the difference
-- (ports.Operator.Recount). The shard works meanwhile: every change updates the counts in the same
-- transaction, so that both agree in one snapshot, however many changes are under way. Returns a
-- status, ok, unknown_queue or no_such_shard; the counts as they were and as they are now; and the
-- PerformAt of the oldest job, NULL if there is no job.
CREATE FUNCTION {schema}.recount(p_queue text, p_index int, OUT status text,
  OUT before_fresh bigint, OUT before_retrying bigint, OUT before_claimed bigint, OUT before_dead bigint,
  OUT fresh bigint, OUT retrying bigint, OUT claimed bigint, OUT dead bigint,
  OUT processed bigint, OUT failed bigint, OUT superseded bigint, OUT stale bigint, OUT repeated bigint, OUT held bigint, OUT oldest bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off AS {$}
DECLARE
  v_shard int;
BEGIN
  SELECT s.id INTO v_shard FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index;
  IF v_shard IS NULL THEN
    status := {schema}.missing_shard(p_queue);
    RETURN;
  END IF;
  status := 'ok';
  -- One at a time, or two would make the same correction twice.
  PERFORM pg_advisory_xact_lock(s.tableoid::bigint << 31 | v_shard) FROM {schema}.shards s WHERE s.id = v_shard;
  WITH was AS (
    SELECT c.* FROM {schema}.counts c WHERE c.shard = v_shard
  ), is_now AS (
    SELECT count(*) FILTER (WHERE j.retry_count < 0) AS fresh, count(*) FILTER (WHERE j.retry_count >= 0) AS retrying,
      (SELECT count(*) FROM {schema}.claimed c WHERE c.shard = v_shard) AS claimed,
      (SELECT count(*) FROM {schema}.dead_letters d WHERE d.shard = v_shard) AS dead,
      (SELECT count(*) FROM {schema}.past p WHERE p.shard = v_shard) AS past,
      (SELECT coalesce(sum(octet_length(p.result)), 0) FROM {schema}.past p WHERE p.shard = v_shard) AS past_bytes
    FROM {schema}.jobs j WHERE j.shard = v_shard
  ), corrected AS (
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, claimed, dead, processed, failed, past, past_bytes)
    SELECT v_shard, n.fresh - w.fresh, n.retrying - w.retrying, n.claimed - w.claimed, n.dead - w.dead, 0, 0,
      n.past - w.past, n.past_bytes - w.past_bytes FROM was w, is_now n
    WHERE (n.fresh, n.retrying, n.claimed, n.dead, n.past, n.past_bytes) <> (w.fresh, w.retrying, w.claimed, w.dead, w.past, w.past_bytes)
  )
  SELECT w.fresh, w.retrying, w.claimed, w.dead, n.fresh, n.retrying, n.claimed, n.dead, w.processed, w.failed, w.superseded, w.stale, w.repeated,
    {schema}.held(v_shard), (SELECT {schema}.oldest(l.shard, l.floor) FROM {schema}.leases l WHERE l.shard = v_shard)
  INTO before_fresh, before_retrying, before_claimed, before_dead, fresh, retrying, claimed, dead, processed, failed, superseded, stale, repeated, held, oldest
  FROM was w, is_now n;

  WITH is_now AS (
    SELECT d.grp, count(*) AS count, min(d.changed_at) AS first_at, max(d.changed_at) AS last_at
    FROM {schema}.dead_letters d WHERE d.shard = v_shard GROUP BY d.grp
  ), was AS (
    SELECT g.grp, g.count FROM {schema}.dead_groups g WHERE g.shard = v_shard
  )
  INSERT INTO {schema}.dead_groups AS g (shard, grp, count, first_at, last_at)
  SELECT v_shard, grp, coalesce(n.count, 0) - coalesce(w.count, 0), coalesce(n.first_at, 0), coalesce(n.last_at, 0)
  FROM is_now n FULL JOIN was w USING (grp)
  WHERE n.count IS DISTINCT FROM w.count
  ORDER BY grp
  ON CONFLICT (shard, grp) DO UPDATE SET count = g.count + excluded.count;
  IF FOUND THEN
    DELETE FROM {schema}.dead_groups g WHERE g.shard = v_shard AND g.count <= 0;
  END IF;
END {$};
