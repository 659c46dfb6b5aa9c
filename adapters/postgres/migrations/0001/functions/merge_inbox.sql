-- Merges at most p_limit rows of a shard's inbox. Returns whether there may be more. The caller
-- holds the shard's lock and has read inbox_from of its row.
CREATE FUNCTION {schema}.merge_inbox(p_shard int, p_inbox_from xid8, p_limit int) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_in     record;
  v_merged record;
BEGIN
  IF NOT EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.scan_from(p_inbox_from)) THEN
    RETURN false;
  END IF;
  SELECT * INTO v_in FROM {schema}.take_inbox(p_shard, p_inbox_from, p_limit);
  IF v_in.early IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, v_in.early);
  END IF;
  IF v_in.freed IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, u.earliest) FROM {schema}.unpark(p_shard, v_in.freed) u WHERE u.earliest IS NOT NULL;
  END IF;
  IF v_in.queued IS NOT NULL THEN
    SELECT * INTO v_merged FROM {schema}.merge(p_shard, v_in.queued);
    PERFORM {schema}.change_counts(p_shard, v_merged.fresh, v_merged.retrying, 0);
    PERFORM {schema}.lower_floor(p_shard, v_merged.earliest);
  END IF;
  IF v_in.buried IS NOT NULL THEN
    PERFORM {schema}.change_counts(p_shard, 0, 0, {schema}.bury(p_shard, v_in.buried));
  END IF;
  RETURN v_in.more;
END {$};
