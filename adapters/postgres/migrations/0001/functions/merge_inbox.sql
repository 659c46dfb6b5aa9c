-- Merges the first rows of a shard's inbox, as many as one step may merge. Returns how many, their
-- size in bytes, and whether there may be more. The caller holds the shard's lock, and no job's: merge waits for pushes, and
-- only it locks jobs in their order.
CREATE FUNCTION {schema}.merge_inbox(p_shard int, OUT n int, OUT size bigint, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_in     record;
  v_merged record;
BEGIN
  v_in := {schema}.take_inbox(p_shard);
  n := v_in.n;
  size := v_in.size;
  more := v_in.more;
  IF v_in.early IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, v_in.early);
  END IF;
  IF v_in.queued IS NOT NULL THEN
    SELECT * INTO v_merged FROM {schema}.merge(p_shard, v_in.queued);
    PERFORM {schema}.change_counts(p_shard, v_merged.fresh, v_merged.retrying, 0);
    PERFORM {schema}.lower_floor(p_shard, v_merged.earliest);
  END IF;
  IF v_in.freed IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, u.earliest) FROM {schema}.unpark(p_shard, v_in.freed) u WHERE u.earliest IS NOT NULL;
  END IF;
  IF v_in.buried IS NOT NULL THEN
    PERFORM {schema}.change_counts(p_shard, 0, 0, {schema}.bury(p_shard, v_in.buried));
  END IF;
END {$};
