-- Returns whether it is time to look for due jobs below the floor. It is also true if the clock
-- has stepped back: a rescan is never planned more than a minute ahead.
CREATE FUNCTION {schema}.rescan_due(p_rescan bigint, p_now bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS {$}
  SELECT p_now >= p_rescan OR p_rescan > p_now + 60000000
{$};
