-- Folds count_changes, so that they are not summed up again and again while no server runs. It
-- does so for each shard of a queue that has more than its part of a few for the whole queue,
-- unless the shard's row is locked, and takes as many as one fold does. A call folds some shards;
-- the next ones fold others.
CREATE FUNCTION {schema}.fold_counts(p_queue text) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_few    CONSTANT int := 5000; -- summed up in some 5 ms
  c_most   CONSTANT int := 1000;
  c_least  CONSTANT int := 10;   -- worth the write of a shard's row
  c_shards CONSTANT int := 100;
  v_few    int;
  v_shard  record;
  v_change record;
BEGIN
  SELECT greatest(c_least, least(c_most, c_few / q.shards)) INTO v_few FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";

  FOR v_shard IN
    SELECT s.id, s.counts_from, s.counts_open FROM {schema}.shards s
    WHERE s.queue = p_queue COLLATE "C" AND EXISTS (
      SELECT FROM {schema}.count_changes a WHERE a.shard = s.id AND a.tx >= {schema}.scan_from(s.counts_from) OFFSET v_few)
    ORDER BY s.id LIMIT c_shards FOR UPDATE SKIP LOCKED
  LOOP
    SELECT * INTO v_change
    FROM {schema}.take_count_changes(v_shard.id, v_shard.counts_from, v_shard.counts_open);
    UPDATE {schema}.shards s SET
      fresh = s.fresh + v_change.fresh, retrying = s.retrying + v_change.retrying, claimed = s.claimed + v_change.claimed,
      dead = s.dead + v_change.dead, processed = s.processed + v_change.processed, failed = s.failed + v_change.failed, superseded = s.superseded + v_change.superseded,
      stale = s.stale + v_change.stale, repeated = s.repeated + v_change.repeated,
      past = s.past + v_change.past, past_bytes = s.past_bytes + v_change.past_bytes,
      counts_from = v_change.counts_from, counts_open = v_change.counts_open
    WHERE s.id = v_shard.id;
  END LOOP;
END {$};
