-- Looks for jobs below a shard's floor, if it is time to, and returns the floor and when to look
-- next. It raises the floor as a claim does, so that no later call passes the dead rows between.
-- The caller holds the shard's lock, and has switched off the planner's other methods.
CREATE FUNCTION {schema}.rescan_if_due(p_shard int, p_floor bigint, p_rescan bigint, p_now bigint, OUT floor bigint, OUT rescan bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_slow_push CONSTANT bigint := 1000000; -- rescans look for pushes that take longer to commit
  v_began timestamptz;
  v_early bigint;
  v_first bigint;
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
  SELECT j.perform_at INTO v_first FROM {schema}.jobs j
  WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_floor AND j.perform_at < p_now - c_slow_push
  ORDER BY j.perform_at, j.id LIMIT 1;
  floor := least(v_early, coalesce(v_first, greatest(p_floor, p_now - c_slow_push)));
  rescan := {schema}.next_rescan(p_now, v_began);
END {$};
