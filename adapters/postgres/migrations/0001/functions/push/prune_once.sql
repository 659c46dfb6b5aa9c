-- Removes what a shard remembers and whose time has ended, at most core.MaxOnceRemoved, but for what
-- another transaction has locked. The caller waits for no other transaction afterwards that pushes to
-- the shard, but for one that has locked a job.
CREATE FUNCTION {schema}.prune_once(p_shard int, p_now bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
DECLARE
  c_most CONSTANT int := 500; -- core.MaxOnceRemoved
BEGIN
  DELETE FROM {schema}.once o WHERE o.ctid = ANY (ARRAY(
    SELECT f.ctid FROM {schema}.once f WHERE f.shard = p_shard AND f.until <= p_now
    ORDER BY f.until LIMIT c_most FOR UPDATE SKIP LOCKED
  ));
END {$};
