-- Removes the first records of a shard by time that are not kept (core.KeepPast.Removes): of jobs done
-- before p_before, beyond p_most records, or beyond p_most_bytes of results. The shard has p_records
-- with p_bytes of results. It removes at most core.MaxPastRemoved, and skips a record that a caller's
-- transaction replaces. Returns how many it has removed, and the bytes of their results.
CREATE FUNCTION {schema}.prune_past(p_shard int, p_before bigint, p_most bigint, p_most_bytes bigint, p_records bigint, p_bytes bigint,
  OUT records int, OUT bytes bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_most CONSTANT bigint := 500; -- core.MaxPastRemoved
  v_old  boolean;
  v_gone tid[];
BEGIN
  records := 0;
  bytes := 0;
  SELECT p.done_at < p_before INTO v_old FROM {schema}.past p WHERE p.shard = p_shard ORDER BY p.done_at, p.id, p.mark LIMIT 1;
  IF v_old IS NULL OR NOT v_old AND p_records <= p_most AND p_bytes <= p_most_bytes THEN
    RETURN;
  END IF;

  WITH first AS MATERIALIZED (
    SELECT p.ctid AS at, p.done_at, p.id, p.mark, coalesce(octet_length(p.result), 0) AS size FROM {schema}.past p
    WHERE p.shard = p_shard ORDER BY p.done_at, p.id, p.mark
    LIMIT CASE WHEN v_old OR p_bytes > p_most_bytes THEN c_most ELSE least(c_most, p_records - p_most) END
    FOR UPDATE SKIP LOCKED
  ), counted AS (
    SELECT f.*, row_number() OVER w - 1 AS before, sum(f.size) OVER w - f.size AS bytes_before
    FROM first f WINDOW w AS (ORDER BY f.done_at, f.id, f.mark)
  )
  SELECT array_agg(c.at), count(*), coalesce(sum(c.size), 0) INTO v_gone, records, bytes FROM counted c
  WHERE c.done_at < p_before OR p_records - c.before > p_most OR p_bytes - c.bytes_before > p_most_bytes;
  DELETE FROM {schema}.past p WHERE p.ctid = ANY (v_gone);
END {$};
