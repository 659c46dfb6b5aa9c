-- Returns how long a lease still lasts. It is at most its TTL: if it expires later, the clock has
-- stepped back.
CREATE FUNCTION {schema}.remaining(p_expires bigint, p_ttl bigint, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT greatest(0, least(p_expires, {schema}.later(p_now, p_ttl)) - p_now)
{$};
