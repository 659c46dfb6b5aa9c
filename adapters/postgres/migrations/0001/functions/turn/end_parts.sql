-- Ends single payloads of claimed jobs as done, and marks the jobs as begun for their next payload.
-- The arrays have one element per part, as core.PayloadSettlement. A part that was applied before
-- only marks the job. Returns the places, from 1, of parts whose job is not claimed with this
-- receipt, has no such payload or no other one, or whose row another session has locked, or NULL if
-- there are no such places.
CREATE FUNCTION {schema}.end_parts(p_shard int, p_ids text[], p_tokens bigint[], p_numbers bigint[], p_positions int[],
  p_retry_counts int[], p_recoveries int[])
RETURNS int[] LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_part    CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  v_skipped int[];
  p         record;
  c         record;
BEGIN
  FOR p IN
    SELECT * FROM unnest(p_ids, p_tokens, p_numbers, p_positions, p_retry_counts, p_recoveries)
      WITH ORDINALITY u (id, token, number, position, retry_count, recoveries, place)
  LOOP
    SELECT l.ctid AS at, l.number INTO c FROM {schema}.claimed l
    WHERE l.shard = p_shard AND l.id = p.id AND l.token = p.token AND l.number IN (p.number, p.number + c_part)
    FOR UPDATE SKIP LOCKED;

    IF NOT FOUND THEN
      v_skipped := v_skipped || p.place::int;
    ELSIF c.number <> p.number THEN -- it was applied before
      UPDATE {schema}.claimed l SET begun = true WHERE l.ctid = c.at;
    ELSIF NOT {schema}.cut_payload(c.at, p.position, p.retry_count, p.recoveries, true) THEN
      v_skipped := v_skipped || p.place::int;
    END IF;
  END LOOP;
  RETURN v_skipped;
END {$};
