-- Returns how many rows of an inbox a turn merges, by its TTL in microseconds: the turn must end
-- well before its sender gives it up, after a third of the TTL.
CREATE FUNCTION {schema}.inbox_limit(p_ttl bigint) RETURNS int LANGUAGE sql IMMUTABLE AS {$}
  SELECT greatest(100, least(5000, p_ttl / 600))::int
{$};
