-- Returns where later reads of a shard's inbox start, after some of its rows have been merged: for
-- shards.inbox_from, inbox_seq and inbox_open.
CREATE FUNCTION {schema}.inbox_mark(p_shard int, OUT since xid8, OUT seq bigint, OUT open xid8[]) LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_snapshot pg_snapshot := pg_current_snapshot(); -- before the look, which may see more
  v_from     xid8;
  v_first    record;
BEGIN
  SELECT s.inbox_from INTO v_from FROM {schema}.shards s WHERE s.id = p_shard;
  SELECT r.tx, r.seq INTO v_first FROM {schema}.inbox_rows(p_shard, 1) r;
  SELECT n.since, n.open INTO since, open FROM {schema}.next_scan(v_from, v_first.tx, v_snapshot) n;
  seq := CASE WHEN since = v_first.tx THEN v_first.seq ELSE 0 END;
END {$};
