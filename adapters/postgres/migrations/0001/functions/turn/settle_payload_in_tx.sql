-- Settles one payload of a claimed job as done, in a caller's transaction. The row of claimed
-- stays, without that payload, with another number (core.Receipt.NextPart), and with p_retry_count
-- and p_recoveries. p_mark is to what the mark of the id is raised, NULL for none. p_position is the payload's position in the claimed job, from 0. The function
-- locks only this row, and waits for another transaction that settles it. status is ok,
-- unknown_queue, no_such_shard, not_utf8 or search_path of unfit_session. settled is how many
-- payloads were settled: 0 if the job is not claimed with this receipt, was handed over to a later
-- lease, or has lost another payload in this transaction; NULL if it has no such payload or no
-- other one.
CREATE FUNCTION {schema}.settle_payload_in_tx(p_queue text, p_index int, p_id text, p_token bigint, p_number bigint,
  p_position int, p_retry_count int, p_recoveries int, p_now bigint, p_mark float8, OUT status text, OUT settled int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  c_part CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  v_shard int := {schema}.find_shard(p_queue, p_index);
  c       record;
BEGIN
  status := coalesce({schema}.unfit_session(), CASE WHEN v_shard IS NULL THEN {schema}.missing_shard(p_queue) END);
  IF status IS NOT NULL THEN
    RETURN;
  END IF;

  status := 'ok';
  settled := 0;
  SELECT l.ctid AS at, l.begun, p_number >= c_part AND {schema}.changed_here(l.xmin) AS own INTO c
  FROM {schema}.claimed l
  WHERE l.shard = v_shard AND l.id = p_id COLLATE "C" AND l.token = p_token AND l.number = p_number AND l.handed_token IS NULL
  FOR UPDATE;
  IF NOT FOUND OR c.own THEN
    RETURN;
  END IF;

  settled := CASE WHEN {schema}.cut_payload(c.at, p_position, p_retry_count, p_recoveries, c.begun) THEN 1 END;
  IF settled = 1 AND p_mark IS NOT NULL THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, past)
    VALUES (v_shard, 0, 0, 0, 0, 0, {schema}.keep_marks(v_shard, {schema}.clock(p_now), ARRAY[p_id], ARRAY[p_mark]));
  END IF;
END {$};
