-- Deletes at most p_limit rows of a shard's inbox, in the order of their transactions, and returns
-- what they bring to the queue and to the morgue, the earliest of the notes of early jobs, the ids
-- whose claims have ended, and whether there may be more. The caller holds the shard's lock and has read inbox_from of its row.
CREATE FUNCTION {schema}.take_inbox(p_shard int, p_inbox_from xid8, p_limit int,
  OUT queued {schema}.arrival[], OUT buried {schema}.arrival[], OUT early bigint, OUT freed text[], OUT more boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_count int;
BEGIN
  WITH found AS (
    SELECT i.ctid AS at FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.scan_from(p_inbox_from)
    ORDER BY i.tx, i.seq LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM {schema}.inbox i USING found f WHERE i.ctid = f.at RETURNING i.*
  ), rows AS (
    SELECT kind, tx, seq, perform_at, id, ROW(kind, rule, rule_limit, perform_at, first_push, score, retry_count, recoveries,
      id, error, data, meta)::{schema}.arrival AS row FROM gone
  )
  SELECT count(*), array_agg(row ORDER BY tx, seq) FILTER (WHERE kind IN ('push', 'put_back')),
    array_agg(row ORDER BY tx, seq) FILTER (WHERE kind = 'buried'), min(perform_at) FILTER (WHERE kind = 'early'),
    array_agg(id) FILTER (WHERE kind = 'freed')
  INTO v_count, queued, buried, early, freed FROM rows;
  more := v_count = p_limit;
END {$};
