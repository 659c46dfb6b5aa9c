-- Returns the number of a shard's held jobs: those that have failed and never run by themselves.
CREATE FUNCTION {schema}.held(p_shard int) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
DECLARE
  c_never CONSTANT bigint := 9007199254740992; -- core.MaxInstant
BEGIN
  RETURN (SELECT count(*) FROM {schema}.jobs j WHERE j.shard = p_shard AND j.retry_count >= 0 AND j.perform_at = c_never);
END {$};
