-- Returns the time from which the longest-waiting job of a shard waits: the later of its PerformAt
-- and FirstPush. Jobs behind the first hundred of each order count from PerformAt. NULL for a shard
-- without jobs. Jobs that are not parked are never due before the floor, and there may be a million
-- dead rows below it.
CREATE FUNCTION {schema}.oldest(p_shard int, p_floor bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS {$}
DECLARE
  c_most CONSTANT int := 100; -- storekit.OldestJobs; LIMIT has a literal, since plans know it
  v_parked boolean;
  v_from   bigint;
  v_job    record;
  v_best   bigint;
  v_n      int;
BEGIN
  FOREACH v_parked IN ARRAY ARRAY[false, true] LOOP
    v_from := CASE WHEN v_parked THEN 0 ELSE p_floor END;
    v_n := 0;
    FOR v_job IN
      SELECT j.perform_at, j.first_push FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked = v_parked AND j.perform_at >= v_from
      ORDER BY j.perform_at, j.id LIMIT 101
    LOOP
      EXIT WHEN v_job.perform_at >= v_best;
      v_n := v_n + 1;
      v_best := least(v_best, CASE WHEN v_n > c_most THEN v_job.perform_at ELSE greatest(v_job.perform_at, v_job.first_push) END);
    END LOOP;
  END LOOP;
  RETURN v_best;
END {$};
