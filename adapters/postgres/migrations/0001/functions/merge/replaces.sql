-- Reports whether a payload replaces one with equal bytes and the score p_there, by a merge rule.
CREATE FUNCTION {schema}.replaces(p_merge_rule int, p_score double precision, p_there double precision) RETURNS boolean LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN p_merge_rule = 0 THEN p_score < p_there ELSE p_score > p_there END
{$};
