-- Returns the first rows of a shard's inbox that are not merged yet, at most p_limit, in the order
-- of their transactions: their ctids, what identifies them, and their sizes.
CREATE FUNCTION {schema}.inbox_rows(p_shard int, p_limit int)
RETURNS TABLE (place tid, tx xid8, seq bigint, size int) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
#variable_conflict use_column
DECLARE
  v_from xid8;
  v_seq  bigint;
  v_open xid8[];
BEGIN
  SELECT {schema}.scan_from(s.inbox_from), s.inbox_seq, s.inbox_open INTO v_from, v_seq, v_open FROM {schema}.shards s WHERE s.id = p_shard;
  IF v_open IS NOT NULL THEN
    RETURN QUERY
    SELECT i.* FROM unnest(v_open) o (tx), LATERAL (
      SELECT i.ctid, i.tx, i.seq, octet_length(i.data) FROM {schema}.inbox i
      WHERE i.shard = p_shard AND i.tx = o.tx AND i.tx < v_from ORDER BY i.tx, i.seq LIMIT p_limit
    ) i LIMIT p_limit;
    IF FOUND THEN
      RETURN; -- newer rows come with the next call
    END IF;
  END IF;
  RETURN QUERY
  SELECT i.ctid, i.tx, i.seq, octet_length(i.data) FROM {schema}.inbox i
  WHERE i.shard = p_shard AND (i.tx, i.seq) >= (v_from, v_seq)
  ORDER BY i.tx, i.seq LIMIT p_limit;
END {$};
