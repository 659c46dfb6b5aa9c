-- Computes what core.Rate.Take does to a limiter that is not ahead of the clock, for slots whose even
-- pace may begin up to p_late before now. Times are in µs, and the times of the limiter become those
-- after the take.
CREATE FUNCTION {schema}.take_slots(p_now bigint, p_interval bigint, p_tolerance bigint, p_want bigint, p_ahead bigint,
  p_soon bigint, p_late bigint, p_stopped bigint, INOUT next bigint, INOUT started bigint, INOUT last bigint,
  OUT granted bigint, OUT first bigint)
LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_max  CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  c_kept CONSTANT bigint := 60000000; -- core.LimiterKept
  v_base bigint; -- the time of slot 0 at an even pace
BEGIN
  IF p_interval = 0 THEN
    first := greatest(p_now, p_stopped);
    granted := CASE WHEN first <= least(c_max, p_now + p_ahead) THEN p_want ELSE 0 END;
    RETURN;
  END IF;

  v_base := greatest(p_now - p_late, least(greatest(next, started), last + p_tolerance + p_interval));
  IF p_stopped > greatest(0, p_now - c_kept) THEN
    v_base := greatest(v_base, p_stopped + p_tolerance);
  END IF;
  v_base := least(c_max, v_base);
  first := v_base - p_tolerance;

  granted := 0;
  IF p_now - first + p_ahead >= 0 THEN
    granted := least(p_want, (p_now - first + p_ahead) / p_interval + 1, (c_max - v_base) / p_interval);
  END IF;
  IF granted = 0 THEN
    RETURN;
  END IF;

  IF p_now - first + p_soon >= 0 THEN
    started := v_base + least(granted, (p_now - first + p_soon) / p_interval + 1) * p_interval;
  END IF;
  next := v_base + granted * p_interval;
  last := greatest(last, p_now, first + (granted - 1) * p_interval);
END {$};
