-- Merges what a shard's inbox holds for an id whose job the caller has locked: all of it or
-- nothing. It does so if that is at most p_most rows and p_bytes, or, if p_first, one row, and if none
-- of them is accepted once: that would wait for pushes, which may wait for the job. Returns
-- whether nothing is left, how many rows it has merged and their size; and fresh, retrying and
-- earliest as merge does.
CREATE FUNCTION {schema}.merge_waiting(p_shard int, p_id text, p_most int, p_bytes bigint, p_first boolean,
  OUT finished boolean, OUT n int, OUT size bigint, OUT fresh int, OUT retrying int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_places tid[];
  v_queued {schema}.inbox[];
  v_once   boolean;
BEGIN
  SELECT array_agg(w.place), count(*), coalesce(sum(w.size), 0), bool_or(w.once IS NOT NULL) INTO v_places, n, size, v_once FROM (
    SELECT i.ctid AS place, octet_length(i.data) AS size, i.once FROM {schema}.inbox i
    WHERE i.shard + 0 = p_shard AND i.id = p_id COLLATE "C" AND i.kind IN ('push', 'put_back') LIMIT p_most + 1
  ) w;
  finished := n = 0 OR NOT v_once AND n <= p_most AND (n = 1 AND p_first OR size <= p_bytes);
  fresh := 0; retrying := 0;
  IF n = 0 OR NOT finished THEN
    n := 0; size := 0;
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM {schema}.inbox i WHERE i.ctid = ANY (v_places) RETURNING i AS row, i.tx, i.seq
  )
  SELECT array_agg(g.row ORDER BY g.tx, g.seq) INTO v_queued FROM gone g;
  SELECT m.fresh, m.retrying, m.earliest INTO fresh, retrying, earliest FROM {schema}.merge(p_shard, v_queued) m;
END {$};
