-- Folds changes of counts that no turn has folded, so that they need not be summed up again
-- and again while no server runs: of each shard of a queue that has more than a few, as many as
-- one fold takes, unless its row is locked.
CREATE FUNCTION {schema}.tidy(p_queue text) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_few CONSTANT int := 1000;
  s     record;
  v     record;
BEGIN
  FOR s IN
    SELECT x.id FROM {schema}.shards x
    WHERE x.queue = p_queue COLLATE "C" AND EXISTS (
      SELECT FROM {schema}.tallies a WHERE a.shard = x.id AND a.tx >= {schema}.since(x.tallied) OFFSET c_few)
    ORDER BY x.id FOR UPDATE SKIP LOCKED
  LOOP
    SELECT * INTO v FROM {schema}.take_tallies(s.id, (SELECT x.tallied FROM {schema}.shards x WHERE x.id = s.id));
    UPDATE {schema}.shards x SET
      fresh = x.fresh + v.fresh, retries = x.retries + v.retries, claimed = x.claimed + v.claimed, dead = x.dead + v.dead,
      processed = x.processed + v.processed, failed = x.failed + v.failed, tallied = v.tallied
    WHERE x.id = s.id;
  END LOOP;
END {$};
