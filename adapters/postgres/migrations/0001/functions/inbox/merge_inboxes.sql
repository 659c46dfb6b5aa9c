-- Merges the inboxes of a queue's shards, of those of p_indexes or for NULL of all, so that a
-- later read is complete. It merges what transactions before p_until have left or, if that is
-- NULL, any that have ended. It ends after as many rows and bytes as one step may merge, so that
-- no turn waits for long; more then means to call again with p_until as returned. It locks shards
-- in order, and only those whose inbox holds something.
CREATE FUNCTION {schema}.merge_inboxes(p_queue text, p_until xid8, p_indexes int[], OUT until xid8, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_shard  record;
  v_merged record;
  v_rows   int := 0;
  v_bytes  bigint := 0;
BEGIN
  until := coalesce(p_until, pg_snapshot_xmax(pg_current_snapshot()));
  more := false;
  FOR v_shard IN
    SELECT s.id, b.payloads, b.bytes FROM {schema}.shards s, {schema}.merge_bounds(s.ttl) b
    WHERE s.queue = p_queue COLLATE "C" AND (p_indexes IS NULL OR s.index = ANY (p_indexes)) AND (
      EXISTS (SELECT FROM {schema}.inbox i
        WHERE i.shard = s.id AND (i.tx, i.seq) >= ({schema}.scan_from(s.inbox_from), s.inbox_seq) AND i.tx < until)
      OR EXISTS (SELECT FROM unnest(s.inbox_open) o (tx), LATERAL (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx = o.tx LIMIT 1) i))
    ORDER BY s.id
  LOOP
    more := v_rows >= v_shard.payloads OR v_bytes >= v_shard.bytes;
    EXIT WHEN more;

    PERFORM FROM {schema}.shards s WHERE s.id = v_shard.id FOR UPDATE;
    v_merged := {schema}.merge_inbox(v_shard.id);
    v_rows := v_rows + v_merged.n; v_bytes := v_bytes + v_merged.size;
    more := v_merged.more;
    EXIT WHEN more;
  END LOOP;
END {$};
