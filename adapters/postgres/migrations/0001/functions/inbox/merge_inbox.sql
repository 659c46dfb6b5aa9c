-- Merges the first rows of a shard's inbox, as many as one step may merge. Returns how many, their
-- size in bytes, and whether there may be more. The caller holds the shard's lock, and no job's:
-- see merge_taken.
CREATE FUNCTION {schema}.merge_inbox(p_shard int, OUT n int, OUT size bigint, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_in record;
BEGIN
  v_in := {schema}.take_inbox(p_shard);
  n := v_in.n;
  size := v_in.size;
  more := v_in.more;
  IF v_in.early IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, v_in.early);
  END IF;
  PERFORM {schema}.merge_taken(p_shard, v_in.queued, v_in.buried, v_in.freed);
END {$};
