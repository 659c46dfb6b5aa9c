-- Computes what a take does to a limiter that is not ahead of the clock: core.Rate.Use, and then
-- core.Rate.Take with one more grant for each slot that may not be used. Times are in µs, and the
-- times of the limiter become those after the take.
CREATE FUNCTION {schema}.take_slots(p_now bigint, p_interval bigint, p_tolerance bigint, p_use bigint, p_want bigint,
  p_ahead bigint, p_stopped bigint, INOUT next bigint, INOUT started bigint, INOUT last bigint,
  OUT used bigint, OUT granted bigint, OUT first bigint)
LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_max   CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  c_kept  CONSTANT bigint := 60000000; -- core.LimiterKept
  v_slack CONSTANT bigint := greatest(p_interval, 250000); -- core.MinSlack
  v_floor bigint := p_now; -- the earliest time of the next slot at an even pace
  v_use   bigint; -- the time of the next use at an even pace
  v_base  bigint; -- the time of slot 0 at an even pace
  v_now   bigint; -- the number of granted slots up to now
BEGIN
  IF p_interval = 0 THEN
    used := CASE WHEN p_stopped > p_now THEN 0 ELSE p_use END;
    first := greatest(p_now, p_stopped);
    granted := CASE WHEN first <= least(c_max, p_now + p_ahead) THEN p_want + p_use - used ELSE 0 END;
    RETURN;
  END IF;

  IF p_stopped > greatest(0, p_now - c_kept) THEN
    v_floor := greatest(p_now, p_stopped + p_tolerance);
  END IF;

  used := 0;
  v_use := greatest(v_floor - v_slack, least(started, last + p_tolerance + p_interval));
  IF p_stopped <= p_now AND p_now - v_use + p_tolerance >= 0 THEN
    used := greatest(0, least(p_use, (p_now - v_use + p_tolerance) / p_interval + 1, (c_max - v_use) / p_interval));
  END IF;
  IF used > 0 THEN
    started := v_use + used * p_interval;
    last := greatest(last, p_now);
  END IF;

  v_base := greatest(v_floor, least(greatest(next, started), last + p_tolerance + p_interval));
  first := least(c_max, v_base) - p_tolerance;
  granted := 0;
  IF p_now - first + p_ahead >= 0 THEN
    granted := greatest(0, least(p_want + p_use - used, (p_now - first + p_ahead) / p_interval + 1,
      (c_max - v_base) / p_interval));
  END IF;
  IF granted = 0 THEN
    RETURN;
  END IF;

  IF p_now >= first THEN
    v_now := least(granted, (p_now - first) / p_interval + 1);
    v_use := greatest(v_floor - v_slack, least(started, last + p_tolerance + p_interval));
    started := v_use + v_now * p_interval;
  END IF;
  next := v_base + granted * p_interval;
  last := greatest(last, p_now, first + (granted - 1) * p_interval);
END {$};
