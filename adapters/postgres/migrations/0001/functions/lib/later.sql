-- Returns the instant p_by microseconds later, within 0 and 2^53, which is core.MaxInstant.
CREATE FUNCTION {schema}.later(p_at bigint, p_by bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN p_by >= 9007199254740992 - p_at THEN 9007199254740992 ELSE greatest(0, p_at + p_by) END
{$};
