-- Deletes changes of a shard's counts that are not folded into its row yet, at most 10,000, and
-- returns their sums. counts_from and counts_open are where to look for others, as p_from and
-- p_open were for these.
CREATE FUNCTION {schema}.take_count_changes(p_shard int, p_from xid8, p_open xid8[],
  OUT fresh bigint, OUT retrying bigint, OUT claimed bigint, OUT dead bigint, OUT processed bigint, OUT failed bigint, OUT superseded bigint, OUT stale bigint, OUT repeated bigint, OUT past bigint, OUT past_bytes bigint, OUT counts_from xid8, OUT counts_open xid8[])
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_most CONSTANT int := 10000;
  v_snapshot pg_snapshot := pg_current_snapshot(); -- before the look, which may see more
  v_last     xid8;
BEGIN
  WITH found AS (
    (SELECT a.at FROM unnest(p_open) o (tx), LATERAL (
      SELECT a.ctid AS at FROM {schema}.count_changes a
      WHERE a.shard = p_shard AND a.tx = o.tx AND a.tx < {schema}.scan_from(p_from) LIMIT c_most
    ) a LIMIT c_most)
    UNION ALL
    (SELECT a.ctid AS at FROM {schema}.count_changes a
    WHERE a.shard = p_shard AND a.tx >= {schema}.scan_from(p_from) ORDER BY a.tx LIMIT c_most)
    LIMIT c_most
  ), gone AS (
    DELETE FROM {schema}.count_changes a USING found f WHERE a.ctid = f.at RETURNING a.*
  )
  SELECT coalesce(sum(g.fresh), 0), coalesce(sum(g.retrying), 0), coalesce(sum(g.claimed), 0), coalesce(sum(g.dead), 0),
    coalesce(sum(g.processed), 0), coalesce(sum(g.failed), 0), coalesce(sum(g.superseded), 0), coalesce(sum(g.stale), 0), coalesce(sum(g.repeated), 0), coalesce(sum(g.past), 0), coalesce(sum(g.past_bytes), 0),
    CASE WHEN count(*) = c_most THEN max(g.tx::text::bigint)::text::xid8 END -- xid8 has no max before 15
  INTO fresh, retrying, claimed, dead, processed, failed, superseded, stale, repeated, past, past_bytes, v_last FROM gone g;
  SELECT n.since, n.open INTO counts_from, counts_open FROM {schema}.next_scan(p_from, v_last, v_snapshot) n;
END {$};
