-- Returns from which PerformAt on to look below the floor. It is the beginning, but with more than
-- a million dead rows only two minutes ago. That finds jobs of pushes that took a minute at most:
-- such a look must end long before a lease does.
CREATE FUNCTION {schema}.rescan_from(p_now bigint) RETURNS bigint LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN {schema}.dead_jobs() < 1000000 THEN 0 ELSE greatest(0, p_now - 120000000) END
{$};
