-- Returns p_now, or the server's clock in microseconds if it is NULL.
CREATE FUNCTION {schema}.clock(p_now bigint) RETURNS bigint LANGUAGE sql VOLATILE AS {$}
  SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
{$};
