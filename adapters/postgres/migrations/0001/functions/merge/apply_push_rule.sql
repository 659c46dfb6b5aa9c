-- Returns the PerformAt of a fresh queued job after a push for its id: p_queued is the job's,
-- p_pushed the push's, p_first when its first push was, and p_limit the limit of Debounce.
CREATE FUNCTION {schema}.apply_push_rule(p_rule smallint, p_limit bigint, p_queued bigint, p_pushed bigint, p_first bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE p_rule
    WHEN 1 /* Earliest */ THEN least(p_queued, p_pushed)
    WHEN 2 /* Debounce */ THEN greatest(p_queued, least(p_pushed, {schema}.later(p_first, p_limit)))
    ELSE /* Keep */ p_queued
  END
{$};
