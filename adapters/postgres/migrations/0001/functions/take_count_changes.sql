-- Deletes changes of a shard's counts that are not folded into its row yet, at most 10,000, and
-- returns their sums. counts_from is from which transaction on to look for others: one that is
-- still open may bring an older change than the last that was found.
CREATE FUNCTION {schema}.take_count_changes(p_shard int, p_counts_from xid8,
  OUT fresh bigint, OUT retrying bigint, OUT claimed bigint, OUT dead bigint, OUT processed bigint, OUT failed bigint, OUT counts_from xid8)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_most CONSTANT int := 10000;
BEGIN
  WITH found AS (
    SELECT a.ctid AS at FROM {schema}.count_changes a
    WHERE a.shard = p_shard AND a.tx >= {schema}.scan_from(p_counts_from) ORDER BY a.tx LIMIT c_most
  ), gone AS (
    DELETE FROM {schema}.count_changes a USING found f WHERE a.ctid = f.at RETURNING a.*
  )
  SELECT coalesce(sum(g.fresh), 0), coalesce(sum(g.retrying), 0), coalesce(sum(g.claimed), 0), coalesce(sum(g.dead), 0),
    coalesce(sum(g.processed), 0), coalesce(sum(g.failed), 0),
    -- xid8 has no max before 15.
    CASE WHEN count(*) < c_most OR max(g.tx::text::bigint)::text::xid8 > pg_snapshot_xmin(pg_current_snapshot())
      THEN pg_snapshot_xmin(pg_current_snapshot()) ELSE max(g.tx::text::bigint)::text::xid8 END
  INTO fresh, retrying, claimed, dead, processed, failed, counts_from FROM gone g;
END {$};
