-- Deletes the first rows of a shard's inbox, as many as one step may merge (merge_bounds) but at
-- least one, in the order of their transactions. Returns their number and their size in bytes, the
-- arrivals for the queue without repeats, and for the morgue, the earliest of the notes of early jobs,
-- the ids whose claims have ended, and whether there may be more. The caller holds the shard's lock, and
-- no job's: see find_repeats.
CREATE FUNCTION {schema}.take_inbox(p_shard int,
  OUT n int, OUT size bigint, OUT queued {schema}.inbox[], OUT buried {schema}.inbox[], OUT early bigint, OUT freed text[], OUT more boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  c_many  CONSTANT int := 100; -- enough rows to store the new start of the next look
  v_rows   int;
  v_bytes  bigint;
  v_places tid[];
  v_from   xid8;
  v_once   boolean;
BEGIN
  SELECT {schema}.scan_from(s.inbox_from), b.payloads, b.bytes INTO v_from, v_rows, v_bytes
  FROM {schema}.shards s, {schema}.merge_bounds(s.ttl) b WHERE s.id = p_shard;

  SELECT array_agg(o.place) FILTER (WHERE o.fits), coalesce(max(o.sum) FILTER (WHERE o.fits), 0), count(*) INTO v_places, size, n FROM (
    SELECT r.place, r.sum, r.nth = 1 OR r.nth <= v_rows AND r.sum <= v_bytes AS fits FROM (
      SELECT r.place, row_number() OVER w AS nth, sum(r.size) OVER w AS sum
      FROM {schema}.inbox_rows(p_shard, v_rows + 1) r WINDOW w AS (ROWS UNBOUNDED PRECEDING) -- in their order
    ) r
  ) o;
  more := n > coalesce(cardinality(v_places), 0);

  WITH gone AS (
    DELETE FROM {schema}.inbox i WHERE i.ctid = ANY (v_places) RETURNING i AS row, i.kind, i.tx, i.seq, i.perform_at, i.id, i.once
  )
  SELECT count(*), bool_or(once IS NOT NULL), array_agg(row ORDER BY tx, seq) FILTER (WHERE kind IN ('push', 'put_back')),
    array_agg(row ORDER BY tx, seq) FILTER (WHERE kind = 'buried'), min(perform_at) FILTER (WHERE kind = 'early'),
    array_agg(id) FILTER (WHERE kind = 'freed'),
    more OR coalesce(bool_or(tx < v_from), false) -- inbox_rows leaves newer rows to the next call
  INTO n, v_once, queued, buried, early, freed, more FROM gone;
  IF v_once THEN
    queued := {schema}.drop_repeats(p_shard, queued);
  END IF;

  IF more OR n >= c_many THEN
    UPDATE {schema}.shards s SET inbox_from = m.since, inbox_seq = m.seq, inbox_open = m.open
    FROM {schema}.inbox_mark(p_shard) m WHERE s.id = p_shard;
  END IF;
END {$};
