-- Ends single payloads of claimed jobs as done, and marks the jobs as begun for their next payload.
-- The arrays have one element per part, as core.PayloadSettlement. A part that was applied before
-- only marks the job as begun. p_marks are the scores to which marks of ids are raised, NULL for none.
-- Returns skipped, the places, from 1, of parts whose job is not claimed with this receipt, has no such
-- payload or no other one, or whose row another session has locked, or NULL if there are no such
-- places; and past, as of keep_marks.
CREATE FUNCTION {schema}.end_parts(p_shard int, p_now bigint, p_ids text[], p_tokens bigint[], p_numbers bigint[], p_positions int[],
  p_retry_counts int[], p_recoveries int[], p_marks float8[], OUT skipped int[], OUT past int)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_part    CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  v_ids     text[];
  v_scores  float8[];
  p         record;
  c         record;
BEGIN
  FOR p IN
    SELECT * FROM unnest(p_ids, p_tokens, p_numbers, p_positions, p_retry_counts, p_recoveries, p_marks)
      WITH ORDINALITY u (id, token, number, position, retry_count, recoveries, mark, place)
  LOOP
    SELECT l.ctid AS at, l.number INTO c FROM {schema}.claimed l
    WHERE l.shard = p_shard AND l.id = p.id AND l.token = p.token AND l.number IN (p.number, p.number + c_part)
    FOR UPDATE SKIP LOCKED;

    IF NOT FOUND THEN
      skipped := skipped || p.place::int;
    ELSIF c.number <> p.number THEN -- it was applied before
      UPDATE {schema}.claimed l SET begun = true WHERE l.ctid = c.at;
    ELSIF NOT {schema}.cut_payload(c.at, p.position, p.retry_count, p.recoveries, true) THEN
      skipped := skipped || p.place::int;
    ELSIF p.mark IS NOT NULL THEN
      v_ids := v_ids || p.id; v_scores := v_scores || p.mark;
    END IF;
  END LOOP;
  past := CASE WHEN v_ids IS NULL THEN 0 ELSE {schema}.keep_marks(p_shard, p_now, v_ids, v_scores) END;
END {$};
