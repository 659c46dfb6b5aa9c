-- Removes payloads from the morgue (ports.Operator.Revive, Purge): from the dead letters p_ids, in
-- order, if they changed before p_before, 0 for any; from the nth of them the next p_counts[n] of
-- p_data, or all for -1. If p_ids is NULL, all payloads of the first p_limit dead letters by time
-- that changed before p_before, only of the group p_group unless that is NULL, and as long as more
-- than p_keep are left, unless that is 0. They go back to the queue if p_revive is set, else they are
-- deleted. If p_fresh is set, given dead letters of which a payload is stale stay; if p_unmark is set,
-- the marks and records of their ids are removed. It ends at what one step may move.
CREATE FUNCTION {schema}.step_revive_or_purge(p_queue text, p_index int, p_now bigint, p_ids text[], p_counts int[], p_data bytea[],
  p_before bigint, p_limit int, p_revive boolean, p_group text, p_keep bigint, p_fresh boolean, p_unmark boolean)
RETURNS {schema}.step_reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_bytes    CONSTANT bigint := 8388608; -- core.MaxStepBytes
  v_locked   record;
  v_reply    {schema}.step_reply;
  v_ids      text[] := p_ids;
  v_excess   bigint; -- how many there are above p_keep
  v_named    bytea[];
  v_tags     text; -- those of a dead letter
  a          {schema}.inbox;
  v_place    int := 0;
  p          record;
  v_payloads int := 0;
  v_bytes    bigint := 0;
  v_taken    {schema}.inbox[]; -- array_append adds to it in place, || with an array copies it
  v_left     text[]; -- the groups of the deleted ones
  v_merged   record;
  v_stale    boolean;
  v_unmarked text[];
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  v_reply.status := v_locked.status; v_reply.now := v_locked.now; v_reply.handled := 0; v_reply.more := false;
  IF v_locked.status <> 'ok' THEN
    RETURN v_reply;
  END IF;

  IF p_keep > 0 THEN
    SELECT greatest(0, c.dead - p_keep) INTO v_excess FROM {schema}.counts c WHERE c.shard = v_locked.shard;
  END IF;

  IF p_ids IS NULL AND p_group IS NOT NULL THEN
    v_ids := ARRAY(
      SELECT d.id FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.grp = p_group AND d.changed_at < p_before
      ORDER BY d.changed_at, d.id LIMIT p_limit);
  ELSIF p_ids IS NULL THEN
    v_ids := ARRAY(
      SELECT d.id FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.changed_at < p_before
      ORDER BY d.changed_at, d.id LIMIT least(p_limit, v_excess));
  END IF;

  v_reply.reached := 0;
  FOR n IN 1..cardinality(v_ids) LOOP
    v_named := NULL;
    IF p_counts[n] >= 0 THEN
      v_named := coalesce(p_data[v_place + 1 : v_place + p_counts[n]], '{}');
      v_place := v_place + p_counts[n];
    END IF;

    IF p_ids IS NOT NULL AND p_before > 0
      AND NOT EXISTS (SELECT FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.id = v_ids[n] AND d.changed_at < p_before) THEN
      v_reply.reached := v_reply.reached + 1;
      CONTINUE;
    END IF;

    IF p_fresh OR p_unmark THEN
      v_stale := (SELECT min(x.score) FROM {schema}.dead_letter_payloads x WHERE x.shard = v_locked.shard AND x.id = v_ids[n]
        AND (v_named IS NULL OR x.digest = ANY (ARRAY(SELECT sha256(u) FROM unnest(v_named) u))))
        <= (SELECT m.score FROM {schema}.marks(v_locked.shard, ARRAY[v_ids[n]]) m);
      IF p_fresh AND v_stale THEN
        v_reply.stale := coalesce(v_reply.stale, 0) + 1;
        v_reply.reached := v_reply.reached + 1;
        CONTINUE;
      END IF;
    END IF;

    IF p_revive THEN
      SELECT d.tags INTO v_tags FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.id = v_ids[n];
    END IF;
    p := {schema}.take_dead(v_locked.shard, v_ids[n], v_named, c_payloads - v_payloads, c_bytes - v_bytes, v_payloads = 0);
    v_payloads := v_payloads + p.n; v_bytes := v_bytes + p.size;
    IF p.gone THEN
      v_left := v_left || p.grp;
    END IF;
    IF p_unmark AND v_stale AND p.n > 0 THEN
      v_unmarked := v_unmarked || v_ids[n];
    END IF;
    IF p_revive AND p.n > 0 THEN
      a := {schema}.new_arrival(v_locked.shard, 'revived', v_ids[n]);
      a.perform_at := v_locked.now;
      a.first_push := v_locked.now;
      a.tags := v_tags;
      FOR m IN 1..p.n LOOP
        a.score := p.scores[m]; a.data := p.data[m]; a.meta := p.meta[m];
        v_taken := array_append(v_taken, a);
      END LOOP;
    END IF;

    EXIT WHEN NOT p.finished;
    v_reply.handled := v_reply.handled + (p.n > 0 OR p.gone)::int;
    v_reply.reached := v_reply.reached + 1;
  END LOOP;

  IF p_ids IS NULL THEN
    v_reply.reached := NULL;
    v_reply.more := CASE WHEN p_group IS NULL
      THEN EXISTS (SELECT FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.changed_at < p_before)
      ELSE EXISTS (SELECT FROM {schema}.dead_letters d WHERE d.shard = v_locked.shard AND d.grp = p_group AND d.changed_at < p_before) END
      AND v_reply.handled < coalesce(v_excess, v_reply.handled + 1);
  END IF;

  IF v_unmarked IS NOT NULL THEN
    WITH gone AS (
      DELETE FROM {schema}.past r WHERE r.shard = v_locked.shard AND r.id = ANY (v_unmarked) RETURNING octet_length(r.result) AS size
    )
    -- A row of count_changes would be seen by the next fold only, and turns would remove too much until then.
    UPDATE {schema}.shards s SET past = s.past - g.records, past_bytes = s.past_bytes - g.bytes
    FROM (SELECT count(*) AS records, coalesce(sum(g.size), 0) AS bytes FROM gone g) g WHERE s.id = v_locked.shard;
  END IF;
  IF cardinality(v_taken) > 0 THEN
    SELECT * INTO v_merged FROM {schema}.merge(v_locked.shard, v_taken);
    v_reply.earliest := v_merged.earliest;
    PERFORM {schema}.lower_floor(v_locked.shard, v_reply.earliest);
    PERFORM {schema}.change_counts(v_locked.shard, v_merged.fresh, v_merged.retrying, 0);
  END IF;
  IF v_left IS NOT NULL THEN
    PERFORM {schema}.change_groups(v_locked.shard, v_left, array_fill(-1, ARRAY[cardinality(v_left)]), NULL);
    PERFORM {schema}.change_counts(v_locked.shard, 0, 0, -cardinality(v_left));
  END IF;

  RETURN v_reply;
END {$};
