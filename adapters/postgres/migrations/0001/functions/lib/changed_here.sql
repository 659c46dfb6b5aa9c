-- Reports whether a row that the caller sees was last changed by the current transaction, or in a
-- savepoint of it. p_xmin is the row's xmin.
CREATE FUNCTION {schema}.changed_here(p_xmin xid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_epoch CONSTANT bigint := 4294967296; -- 2^32
  v_now bigint := pg_current_xact_id()::text::bigint;
  v_xid bigint := v_now - v_now % c_epoch + p_xmin::text::bigint;
BEGIN
  -- A savepoint has a larger number than its transaction.
  IF v_xid - v_now > c_epoch / 2 THEN
    v_xid := v_xid - c_epoch;
  ELSIF v_now - v_xid > c_epoch / 2 THEN
    v_xid := v_xid + c_epoch;
  END IF;
  RETURN v_xid > 0 AND coalesce(pg_xact_status(v_xid::text::xid8) = 'in progress', false);
END {$};
