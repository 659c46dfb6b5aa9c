-- Folds changes of counts that no turn has folded, so that they need not be summed up again
-- and again while no server runs: of each shard of a queue that has more than a few, at most
-- so many, unless its row is locked. Transactions still open keep tallied from passing them.
CREATE FUNCTION {schema}.tidy(p_queue text) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS {$}
DECLARE
  c_few  CONSTANT int := 1000;
  c_most CONSTANT int := 10000;
  s      record;
  v      record;
BEGIN
  FOR s IN
    SELECT x.id FROM {schema}.queues q JOIN {schema}.shards x ON x.id BETWEEN q.id * 16384 AND q.id * 16384 + 16383
    WHERE q.name = p_queue COLLATE "C" AND EXISTS (
      SELECT FROM {schema}.tallies a WHERE a.shard = x.id AND a.tx >= {schema}.since(x.tallied) OFFSET c_few)
    ORDER BY x.id FOR UPDATE OF x SKIP LOCKED
  LOOP
    WITH found AS (
      SELECT a.ctid AS at FROM {schema}.shards x JOIN {schema}.tallies a ON a.shard = x.id AND a.tx >= {schema}.since(x.tallied)
      WHERE x.id = s.id ORDER BY a.tx LIMIT c_most
    ), gone AS (
      DELETE FROM {schema}.tallies a USING found f WHERE a.ctid = f.at RETURNING a.*
    )
    SELECT coalesce(sum(fresh), 0) AS fresh, coalesce(sum(retries), 0) AS retries, coalesce(sum(dead), 0) AS dead,
      coalesce(sum(processed), 0) AS processed, coalesce(sum(failed), 0) AS failed,
      -- xid8 has no max before 15.
      CASE WHEN count(*) < c_most OR max(tx::text::bigint)::text::xid8 > pg_snapshot_xmin(pg_current_snapshot())
        THEN pg_snapshot_xmin(pg_current_snapshot()) ELSE max(tx::text::bigint)::text::xid8 END AS tallied
    INTO v FROM gone;
    UPDATE {schema}.shards x SET
      fresh = x.fresh + v.fresh, retries = x.retries + v.retries, dead = x.dead + v.dead,
      processed = x.processed + v.processed, failed = x.failed + v.failed, tallied = v.tallied
    WHERE x.id = s.id;
  END LOOP;
END {$};
