-- Returns the rows of a shard's inbox for some ids, from transactions before p_until, at most
-- p_limit: their ctids and sizes. For each id, the rows for the queue come first, in the order of
-- transactions, and then the rows that its settlements left, in theirs.
CREATE FUNCTION {schema}.inbox_rows_of(p_shard int, p_ids text[], p_until xid8, p_limit int)
RETURNS TABLE (place tid, size int) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT r.place, r.size FROM (SELECT DISTINCT n.id FROM unnest(p_ids) n (id)) u, LATERAL (
    SELECT * FROM (
      SELECT i.ctid AS place, octet_length(i.data) AS size FROM {schema}.inbox i
      WHERE i.shard + 0 = p_shard AND i.id = u.id COLLATE "C" AND i.kind IN ('push', 'put_back') AND i.tx < p_until
      ORDER BY i.tx, i.seq LIMIT p_limit
    ) queued
    UNION ALL
    SELECT * FROM (
      SELECT i.ctid, octet_length(i.data) FROM {schema}.inbox i
      WHERE i.shard + 0 = p_shard AND i.id = u.id COLLATE "C" AND i.kind IN ('buried', 'freed') AND i.tx < p_until
      ORDER BY i.tx, i.seq LIMIT p_limit
    ) settled
  ) r LIMIT p_limit;
END {$};
