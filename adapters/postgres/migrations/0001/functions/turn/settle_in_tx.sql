-- Settles claimed jobs of a shard in a caller's transaction, all or none. The settlements are a
-- JSON array of objects with the fields of core.Settlement and its PutBack; except is an object of
-- dispositions by position. It locks only these rows of claimed, and waits for another transaction
-- that settles one of them. Payloads that are put back or buried go into the inbox, and so does a
-- note for each id that has a parked job. status is ok, unknown_queue, no_such_shard, not_utf8 or
-- search_path of unfit_session; settled is how many are claimed with these receipts, and have
-- not lost a payload in this transaction: if it is fewer than given, no job is settled.
CREATE FUNCTION {schema}.settle_in_tx(p_queue text, p_index int, p_now bigint, p_settlements jsonb,
  OUT status text, OUT settled int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  c_requeue CONSTANT int := 1; -- core.Requeue
  c_bury    CONSTANT int := 2; -- core.Bury
  c_part    CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  c_same     CONSTANT smallint := 1; -- core.PutBack.SameTime
  c_awaits   CONSTANT smallint := 2; -- core.PutBack.Awaits
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest: the earlier of both times if it was pushed since
  v_shard int := {schema}.find_shard(p_queue, p_index);
  v_now   bigint := {schema}.clock(p_now);
BEGIN
  status := coalesce({schema}.unfit_session(), CASE WHEN v_shard IS NULL THEN {schema}.missing_shard(p_queue) END);
  IF status IS NOT NULL THEN
    RETURN;
  END IF;

  status := 'ok';
  -- LATERAL with FOR UPDATE looks up each id by itself, in order. A join reads all claims of the
  -- shard if the planner has no statistics of the table.
  SELECT count(DISTINCT l.id) INTO settled FROM (
    SELECT s.* FROM jsonb_to_recordset(p_settlements) AS s (id text, token bigint, number bigint) ORDER BY s.id COLLATE "C"
  ) s, LATERAL (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = v_shard AND c.id = s.id COLLATE "C" AND c.token = s.token AND c.number = s.number
      AND NOT (s.number >= c_part AND {schema}.changed_here(c.xmin)) FOR UPDATE
  ) l;
  IF settled <> jsonb_array_length(p_settlements) THEN
    RETURN;
  END IF;

  WITH found AS MATERIALIZED (
    SELECT s.*, c.at
    FROM ROWS FROM (jsonb_to_recordset(p_settlements) AS (id text, rest int, "except" jsonb, time_rule smallint, delay bigint,
      retry_count int, recoveries int, error text, bury_error text, grp text, processed boolean, failed boolean)
    ) WITH ORDINALITY AS s (id, rest, "except", time_rule, delay, retry_count, recoveries, error, bury_error, grp, processed, failed, place),
    LATERAL (SELECT c.ctid AS at FROM {schema}.claimed c WHERE c.shard = v_shard AND c.id = s.id COLLATE "C" FOR UPDATE) c
  ), gone AS (
    DELETE FROM {schema}.claimed c USING found s WHERE c.ctid = s.at
    RETURNING s.*, c.error AS tagged, c.perform_at, c.first_push, ARRAY[c.score] || c.more_scores AS scores, ARRAY[c.data] || c.more_data AS data,
      ARRAY[c.meta] || c.more_meta AS meta
  ), counted AS (
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, claimed, dead, processed, failed)
    SELECT v_shard, 0, 0, - count(*), 0, count(*) FILTER (WHERE g.processed), count(*) FILTER (WHERE g.failed)
    FROM gone g HAVING count(*) > 0
  ), noted AS (
    -- Above READ COMMITTED, a job that was parked since the transaction began is not visible.
    INSERT INTO {schema}.inbox (shard, kind, perform_at, id)
    SELECT v_shard, 'freed', 0, g.id FROM gone g
    WHERE current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
      OR EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = v_shard AND j.id = g.id COLLATE "C" AND j.parked)
  )
  -- The payloads after the first one of a job put back are merged like a push onto it: the rows may
  -- be merged in parts, and a push in between may have moved the job.
  INSERT INTO {schema}.inbox (shard, rule, kind, perform_at, first_push, score, retry_count, recoveries, id, error, data, meta, grp)
  SELECT v_shard,
    CASE WHEN g.time_rule = c_awaits AND row_number() OVER (PARTITION BY g.place, d.disposition ORDER BY p.position) = 1
      THEN c_earliest ELSE c_keep END,
    CASE WHEN d.disposition = c_bury THEN 'buried'
      WHEN row_number() OVER (PARTITION BY g.place, d.disposition ORDER BY p.position) = 1 THEN 'put_back' ELSE 'push' END::{schema}.arrival_kind,
    CASE WHEN d.disposition = c_bury THEN v_now WHEN g.time_rule = c_same THEN g.perform_at ELSE {schema}.later(v_now, g.delay) END,
    g.first_push, p.score, g.retry_count, g.recoveries, g.id, {schema}.unite_tags(CASE d.disposition WHEN c_requeue THEN g.error ELSE g.bury_error END, g.tagged),
    p.data, p.meta, CASE d.disposition WHEN c_bury THEN g.grp END
  FROM gone g, unnest(g.scores, g.data, g.meta) WITH ORDINALITY AS p (score, data, meta, position),
    LATERAL (SELECT coalesce((g."except" ->> (p.position - 1)::text)::int, g.rest) AS disposition) d
  WHERE d.disposition IN (c_requeue, c_bury)
  ORDER BY g.place, p.position;
END {$};
