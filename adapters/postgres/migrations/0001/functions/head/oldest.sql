-- Returns the PerformAt of a shard's oldest job, NULL if it has none. Jobs that are not parked are
-- never due before the floor, and there may be a million dead rows below it.
CREATE FUNCTION {schema}.oldest(p_shard int, p_floor bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
BEGIN
  RETURN least(
    (SELECT j.perform_at FROM {schema}.jobs j WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_floor
      ORDER BY j.perform_at, j.id LIMIT 1),
    (SELECT j.perform_at FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked ORDER BY j.perform_at, j.id LIMIT 1));
END {$};
