-- Returns the transaction from which the next scan looks for rows that are not folded or merged
-- yet, and the open transactions before it that it has to look for as well. p_from is the present
-- start, p_first the first transaction with a visible row, or NULL, and p_snapshot a snapshot that
-- is not younger than that look. They are listed separately so that a transaction that stays open
-- for long does not make each scan read the rows after it again.
CREATE FUNCTION {schema}.next_scan(p_from xid8, p_first xid8, p_snapshot pg_snapshot, OUT since xid8, OUT open xid8[])
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_most CONSTANT int := 16;
  v_end  xid8 := least(p_first, pg_snapshot_xmax(p_snapshot), pg_current_xact_id_if_assigned());
BEGIN
  since := least(pg_snapshot_xmin(p_snapshot), v_end);
  IF since < v_end AND since <= p_from THEN
    SELECT array_agg(x.tx) FILTER (WHERE x.old), coalesce((array_agg(x.tx ORDER BY x.tx) FILTER (WHERE NOT x.old))[1], v_end) INTO open, since
    FROM (
      SELECT o.tx, o.tx <= p_from AND row_number() OVER (ORDER BY o.tx) <= c_most AS old
      FROM pg_snapshot_xip(p_snapshot) o (tx) WHERE o.tx < v_end
    ) x;
  END IF;
END {$};
