-- Returns when to look below the floor again, after a look that began at p_began. That is after 1
-- to 50 s, so that looks take no more than a twentieth of the time, however many dead rows there
-- are.
CREATE FUNCTION {schema}.next_rescan(p_now bigint, p_began timestamptz) RETURNS bigint LANGUAGE sql VOLATILE AS {$}
  SELECT p_now + least(50000000, greatest(1000000, (20000000 * extract(epoch FROM clock_timestamp() - p_began))::bigint))
{$};
