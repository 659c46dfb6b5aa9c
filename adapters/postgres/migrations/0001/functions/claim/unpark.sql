-- Makes parked jobs claimable again: those of ids whose claims have ended. Returns the earliest
-- PerformAt of such a job, or NULL; and more, whether a push has locked some of them. These are
-- noted in the inbox, so that the next turn tries again.
CREATE FUNCTION {schema}.unpark(p_shard int, p_ids text[], OUT earliest bigint, OUT more boolean) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_parked text[];
BEGIN
  more := false;
  SELECT array_agg(j.id), min(j.perform_at) INTO v_parked, earliest
  FROM (SELECT DISTINCT u.id FROM unnest(p_ids) u (id)) u, LATERAL (
    SELECT j.id, j.perform_at, j.parked FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = u.id LIMIT 1
  ) j
  WHERE j.parked;
  IF v_parked IS NULL THEN
    RETURN;
  END IF;
  WITH freed AS (
    UPDATE {schema}.jobs j SET parked = false
    WHERE j.ctid = ANY (ARRAY(
      SELECT f.at FROM unnest(v_parked) u (id), LATERAL (
        SELECT f.ctid AS at FROM {schema}.jobs f WHERE f.shard = p_shard AND f.id = u.id AND f.parked FOR UPDATE SKIP LOCKED
      ) f))
    RETURNING j.id
  )
  INSERT INTO {schema}.inbox (shard, kind, id)
  SELECT p_shard, 'freed', u.id FROM unnest(v_parked) u (id) WHERE u.id NOT IN (SELECT f.id FROM freed f);
  more := FOUND;
END {$};
