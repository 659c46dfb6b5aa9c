-- Looks for jobs below a shard's floor, if it is time to, and returns the floor and when to look
-- next. The caller holds the shard's lock, and has switched off the planner's other methods.
CREATE FUNCTION {schema}.rescan_if_due(p_shard int, p_floor bigint, p_rescan bigint, p_now bigint, OUT floor bigint, OUT rescan bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_began timestamptz;
  v_early bigint;
BEGIN
  floor := p_floor;
  rescan := p_rescan;
  IF NOT {schema}.rescan_due(p_rescan, p_now) THEN
    RETURN;
  END IF;
  v_began := clock_timestamp();
  SELECT j.perform_at INTO v_early FROM {schema}.jobs j
  WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= {schema}.rescan_from(p_now) AND j.perform_at < p_floor
    AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
  ORDER BY j.perform_at, j.id LIMIT 1;
  floor := least(p_floor, v_early);
  rescan := {schema}.next_rescan(p_now, v_began);
END {$};
