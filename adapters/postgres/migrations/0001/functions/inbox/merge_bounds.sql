-- Returns how many rows and bytes of an inbox one step may merge beside a lease of a TTL, 0 for no
-- lease. For a TTL below 5 s they are in proportion to it, so that a step ends long before the
-- lease. They are at least 100 rows, some 10 ms, and what fits 50 ms, the least TTL of a server.
CREATE FUNCTION {schema}.merge_bounds(p_ttl bigint, OUT payloads int, OUT bytes bigint) LANGUAGE sql IMMUTABLE AS {$}
  SELECT greatest(100, 1000 /* core.MaxTurnPayloads */ * l.ttl / 5000000)::int, 8388608 /* core.MaxStepBytes */ * l.ttl / 5000000
  FROM (SELECT CASE WHEN p_ttl > 0 THEN greatest(50000, least(p_ttl, 5000000)) ELSE 5000000 END) l (ttl)
{$};
