-- Folds count_changes, so that they are not summed up again and again while no server runs: of
-- each shard of a queue that has more than a few, as many as one fold takes, unless the shard's
-- row is locked.
CREATE FUNCTION {schema}.fold_counts(p_queue text) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_few    CONSTANT int := 1000;
  v_shard  record;
  v_change record;
BEGIN
  FOR v_shard IN
    SELECT s.id, s.counts_from, s.counts_open FROM {schema}.shards s
    WHERE s.queue = p_queue COLLATE "C" AND EXISTS (
      SELECT FROM {schema}.count_changes a WHERE a.shard = s.id AND a.tx >= {schema}.scan_from(s.counts_from) OFFSET c_few)
    ORDER BY s.id FOR UPDATE SKIP LOCKED
  LOOP
    SELECT * INTO v_change
    FROM {schema}.take_count_changes(v_shard.id, v_shard.counts_from, v_shard.counts_open);
    UPDATE {schema}.shards s SET
      fresh = s.fresh + v_change.fresh, retrying = s.retrying + v_change.retrying, claimed = s.claimed + v_change.claimed,
      dead = s.dead + v_change.dead, processed = s.processed + v_change.processed, failed = s.failed + v_change.failed,
      counts_from = v_change.counts_from, counts_open = v_change.counts_open
    WHERE s.id = v_shard.id;
  END LOOP;
END {$};
