-- Merges what a shard's inbox holds for some ids, and leaves the rest of it, so that a later read
-- of these ids is complete. It merges what transactions before p_until have left or, if that is
-- NULL, any that have ended. For each id it merges in the order of transactions, as merge_inbox
-- does. It ends after as many rows and bytes as one step may merge; more then means to call again
-- with p_until as returned. It locks the shard only if something waits. Notes of early jobs, which
-- have no id, are left to the next turn.
CREATE FUNCTION {schema}.merge_ids(p_queue text, p_index int, p_ids text[], p_until xid8, OUT until xid8, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_shard  int := {schema}.find_shard(p_queue, p_index);
  v_rows   int;
  v_bytes  bigint;
  v_places tid[];
  v_in     record;
BEGIN
  until := coalesce(p_until, pg_snapshot_xmax(pg_current_snapshot()));
  more := false;
  IF NOT EXISTS (SELECT FROM {schema}.inbox_rows_of(v_shard, p_ids, until, 1)) THEN
    RETURN;
  END IF;

  SELECT b.payloads, b.bytes INTO v_rows, v_bytes
  FROM (SELECT s.ttl FROM {schema}.shards s WHERE s.id = v_shard FOR UPDATE) s, {schema}.merge_bounds(s.ttl) b;
  SELECT array_agg(r.place) FILTER (WHERE r.fits), coalesce(bool_or(NOT r.fits), false) INTO v_places, more FROM (
    SELECT r.place, r.nth = 1 OR r.nth <= v_rows AND r.sum <= v_bytes AS fits FROM (
      SELECT r.place, row_number() OVER w AS nth, sum(r.size) OVER w AS sum
      FROM {schema}.inbox_rows_of(v_shard, p_ids, until, v_rows + 1) r WINDOW w AS (ROWS UNBOUNDED PRECEDING) -- in their order
    ) r
  ) r;

  WITH gone AS (
    DELETE FROM {schema}.inbox i WHERE i.ctid = ANY (v_places) RETURNING i AS row, i.kind, i.tx, i.seq, i.id, i.once
  )
  SELECT array_agg(row ORDER BY tx, seq) FILTER (WHERE kind IN ('push', 'put_back')) AS queued,
    array_agg(row ORDER BY tx, seq) FILTER (WHERE kind = 'buried') AS buried, array_agg(id) FILTER (WHERE kind = 'freed') AS freed,
    bool_or(once IS NOT NULL) AS once
  INTO v_in FROM gone;
  IF v_in.once THEN
    v_in.queued := {schema}.drop_repeats(v_shard, v_in.queued);
  END IF;

  PERFORM {schema}.merge_taken(v_shard, v_in.queued, v_in.buried, v_in.freed);
END {$};
