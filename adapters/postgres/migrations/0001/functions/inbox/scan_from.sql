-- Returns from which transaction on to look for rows that are not folded or merged yet, given
-- counts_from or inbox_from. In a database that was restored elsewhere, transactions may count
-- from the beginning again.
CREATE FUNCTION {schema}.scan_from(p_tx xid8) RETURNS xid8 LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN p_tx <= pg_snapshot_xmax(pg_current_snapshot()) THEN p_tx ELSE '0'::xid8 END
{$};
