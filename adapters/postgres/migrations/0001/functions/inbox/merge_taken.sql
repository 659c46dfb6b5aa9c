-- Merges the rows that were taken out of a shard's inbox: arrivals for the queue and for the
-- morgue, and the ids whose claims have ended; each NULL for none. The caller holds the shard's
-- lock, and no job's: merge waits for pushes, and only it locks jobs in their order.
CREATE FUNCTION {schema}.merge_taken(p_shard int, p_queued {schema}.inbox[], p_buried {schema}.inbox[], p_freed text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_merged record;
BEGIN
  IF p_queued IS NOT NULL THEN
    SELECT * INTO v_merged FROM {schema}.merge(p_shard, p_queued);
    PERFORM {schema}.change_counts(p_shard, v_merged.fresh, v_merged.retrying, 0);
    PERFORM {schema}.lower_floor(p_shard, v_merged.earliest);
  END IF;
  IF p_freed IS NOT NULL THEN
    PERFORM {schema}.lower_floor(p_shard, u.earliest) FROM {schema}.unpark(p_shard, p_freed) u WHERE u.earliest IS NOT NULL;
  END IF;
  IF p_buried IS NOT NULL THEN
    PERFORM {schema}.change_counts(p_shard, 0, 0, {schema}.bury(p_shard, p_buried));
  END IF;
END {$};
