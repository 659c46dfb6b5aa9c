-- Returns since when the job of a shard waits that has waited longest: from the later of its
-- PerformAt and FirstPush on. Jobs behind the first hundred in their order count from PerformAt.
-- NULL for a shard without jobs. Jobs that are not parked are never due before the floor, and there
-- may be a million dead rows below it.
CREATE FUNCTION {schema}.oldest(p_shard int, p_floor bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS {$}
DECLARE
  c_most CONSTANT int := 100; -- storekit.OldestJobs; LIMIT has a literal, since plans know it
  v_job  record;
  v_best bigint;
  v_n    int := 0;
BEGIN
  FOR v_job IN
    SELECT j.perform_at, j.first_push FROM {schema}.jobs j WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_floor
    ORDER BY j.perform_at, j.id LIMIT 101
  LOOP
    EXIT WHEN v_job.perform_at >= v_best;
    v_n := v_n + 1;
    v_best := least(v_best, CASE WHEN v_n > c_most THEN v_job.perform_at ELSE greatest(v_job.perform_at, v_job.first_push) END);
  END LOOP;
  v_n := 0;
  FOR v_job IN
    SELECT j.perform_at, j.first_push FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked ORDER BY j.perform_at, j.id LIMIT 101
  LOOP
    EXIT WHEN v_job.perform_at >= v_best;
    v_n := v_n + 1;
    v_best := least(v_best, CASE WHEN v_n > c_most THEN v_job.perform_at ELSE greatest(v_job.perform_at, v_job.first_push) END);
  END LOOP;
  RETURN v_best;
END {$};
