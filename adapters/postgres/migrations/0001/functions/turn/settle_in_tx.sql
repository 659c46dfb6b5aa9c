-- Settles claimed jobs of a shard in a caller's transaction, all or none. The settlements are a
-- JSON array of objects of the type settlement. It locks only these rows of claimed, and waits for
-- another transaction that settles one of them. Payloads that are put back or buried go into the
-- inbox, and so does a note for each id that has a parked job. status is ok, unknown_queue,
-- no_such_shard, not_utf8 or search_path of unfit_session; settled is how many are claimed with
-- these receipts, and have not lost a payload in this transaction: if it is fewer than given, no
-- job is settled.
CREATE FUNCTION {schema}.settle_in_tx(p_queue text, p_index int, p_now bigint, p_settlements json,
  OUT status text, OUT settled int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  c_part CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  v_shard       int := {schema}.find_shard(p_queue, p_index);
  v_now         bigint := {schema}.clock(p_now);
  v_settlements {schema}.settlement[];
  v_kept        record;
BEGIN
  status := coalesce({schema}.unfit_session(), CASE WHEN v_shard IS NULL THEN {schema}.missing_shard(p_queue) END);
  IF status IS NOT NULL THEN
    RETURN;
  END IF;

  status := 'ok';
  v_settlements := ARRAY(SELECT s FROM json_populate_recordset(NULL::{schema}.settlement, p_settlements) s);
  -- LATERAL with FOR UPDATE looks up each id by itself, in order. A join reads all claims of the
  -- shard if the planner has no statistics of the table.
  SELECT count(DISTINCT l.id) INTO settled FROM (
    SELECT u.id, u.token, u.number FROM unnest(v_settlements) u ORDER BY u.id
  ) s, LATERAL (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = v_shard AND c.id = s.id COLLATE "C" AND c.token = s.token AND c.number = s.number
      AND NOT (s.number >= c_part AND {schema}.changed_here(c.xmin)) FOR UPDATE
  ) l;
  IF settled <> cardinality(v_settlements) THEN
    RETURN;
  END IF;

  WITH found AS MATERIALIZED (
    SELECT s.settlement, s.place, c.at
    FROM (SELECT u AS settlement, row_number() OVER () AS place FROM unnest(v_settlements) u) s, LATERAL (
      SELECT c.ctid AS at FROM {schema}.claimed c WHERE c.shard = v_shard AND c.id = (s.settlement).id FOR UPDATE
    ) c
  ), gone AS (
    DELETE FROM {schema}.claimed c USING found s WHERE c.ctid = s.at
    RETURNING s.settlement, s.place, c AS claim
  ), counted AS (
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, claimed, dead, processed, failed)
    SELECT v_shard, 0, 0, - count(*), 0, count(*) FILTER (WHERE (g.settlement).processed), count(*) FILTER (WHERE (g.settlement).failed)
    FROM gone g HAVING count(*) > 0
  ), noted AS (
    -- Above READ COMMITTED, a job that was parked since the transaction began is not visible.
    INSERT INTO {schema}.inbox (shard, kind, id)
    SELECT v_shard, 'freed', (g.settlement).id FROM gone g
    WHERE current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
      OR EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = v_shard AND j.id = (g.settlement).id AND j.parked)
  )
  INSERT INTO {schema}.inbox OVERRIDING USER VALUE -- which leaves seq to the table
  SELECT (r.arrival).* FROM (
    SELECT a AS arrival, g.place, row_number() OVER () AS nth
    FROM gone g, LATERAL {schema}.arrivals_of(g.claim, g.settlement, v_now) a
  ) r
  ORDER BY r.place, r.nth;

  IF EXISTS (SELECT FROM unnest(v_settlements) s WHERE NOT (s.past IS NULL)) THEN
    SELECT * INTO v_kept FROM {schema}.keep_past(v_shard, v_now, v_settlements);
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, past, past_bytes)
    VALUES (v_shard, 0, 0, 0, 0, 0, v_kept.records, v_kept.bytes);
  END IF;
  IF EXISTS (SELECT FROM unnest(v_settlements) s WHERE s.mark IS NOT NULL OR s.stale > 0) THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, past, stale)
    SELECT v_shard, 0, 0, 0, 0, 0,
      {schema}.keep_marks(v_shard, v_now, ARRAY(SELECT s.id FROM unnest(v_settlements) s), ARRAY(SELECT s.mark FROM unnest(v_settlements) s)),
      (SELECT coalesce(sum(s.stale), 0) FROM unnest(v_settlements) s);
  END IF;
END {$};
