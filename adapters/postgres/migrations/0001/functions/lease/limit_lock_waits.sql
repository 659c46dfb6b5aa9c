-- Bounds how long the transaction waits for a lock: for 500 ms or a tenth of the TTL, whichever is
-- less. lock_timeout is in milliseconds, the TTL in microseconds.
CREATE FUNCTION {schema}.limit_lock_waits(p_ttl bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  PERFORM set_config('lock_timeout', greatest(1, least(500, p_ttl / 10000))::text, true);
END {$};
