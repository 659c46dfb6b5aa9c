-- Returns when a shard can next give a job, NULL if never: the PerformAt of the first job from
-- p_floor on whose id is not claimed. The caller has switched off what else the planner might do.
CREATE FUNCTION {schema}.head(p_shard int, p_floor bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_alone CONSTANT int := 2; -- core.AloneRecoveries
  v_at    bigint;
  v_again int;
BEGIN
  SELECT j.perform_at, j.recoveries INTO v_at, v_again FROM {schema}.jobs j
  WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_floor
    AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
  ORDER BY j.perform_at, j.id LIMIT 1;
  -- The condition on claimed is that of its index claimed_exceptional, word for word.
  IF v_at IS NULL OR v_again >= c_alone AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard)
    OR EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard AND c.recoveries > 1
      AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL)) THEN
    RETURN NULL;
  END IF;
  RETURN v_at;
END {$};
