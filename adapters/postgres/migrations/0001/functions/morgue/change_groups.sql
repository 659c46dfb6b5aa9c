-- Counts dead letters that have come into groups (1), were buried again in theirs (0) or have left
-- them (-1): one element each of the names, the changes, and when they were buried, NULL for those
-- that left. Groups without a dead letter are deleted. The earliest may come last, from a caller's
-- transaction or a clock that stepped back. Rows are locked in order of their names, since a
-- recount holds no other lock.
CREATE FUNCTION {schema}.change_groups(p_shard int, p_names text[], p_changes int[], p_times bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
BEGIN
  INSERT INTO {schema}.dead_groups AS g (shard, grp, count, first_at, last_at)
  SELECT p_shard, n.grp, sum(n.change), coalesce(min(n.at), 0), coalesce(max(n.at), 0)
  FROM unnest(p_names, p_changes, p_times) n (grp, change, at)
  GROUP BY n.grp ORDER BY n.grp COLLATE "C"
  ON CONFLICT (shard, grp) DO UPDATE SET count = g.count + excluded.count,
    first_at = least(g.first_at, nullif(excluded.first_at, 0)), last_at = greatest(g.last_at, excluded.last_at);
  IF -1 = ANY (p_changes) THEN
    DELETE FROM {schema}.dead_groups g WHERE g.shard = p_shard AND g.grp = ANY (p_names) AND g.count <= 0;
  END IF;
END {$};
