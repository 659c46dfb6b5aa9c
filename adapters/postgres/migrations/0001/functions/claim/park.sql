-- Parks the jobs at places that were skipped since their ids are claimed: claims no longer meet
-- them until unpark. The claims are locked until the turn has committed, so that a transaction
-- that settles one outside of a turn sees that its id has a parked job. Returns whether all are
-- parked. A job that a push has locked is not parked, nor one whose claim a caller's transaction
-- has locked to settle it.
CREATE FUNCTION {schema}.park(p_shard int, p_places tid[]) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_parked int;
BEGIN
  WITH found AS MATERIALIZED (
    SELECT j.ctid AS at, j.id FROM {schema}.jobs j WHERE j.ctid = ANY (p_places) AND (j.shard = p_shard) IS TRUE FOR UPDATE SKIP LOCKED
  ), held AS MATERIALIZED (
    SELECT c.id FROM found f, LATERAL (
      SELECT c.id FROM {schema}.claimed c WHERE c.shard = p_shard AND c.id = f.id FOR KEY SHARE SKIP LOCKED
    ) c
  )
  UPDATE {schema}.jobs j SET parked = true
  WHERE j.ctid = ANY (ARRAY(SELECT f.at FROM found f, held h WHERE h.id = f.id));
  GET DIAGNOSTICS v_parked = ROW_COUNT;
  UPDATE {schema}.shards s SET parked = true WHERE s.id = p_shard AND v_parked > 0 AND NOT s.parked;
  RETURN v_parked = cardinality(p_places);
END {$};
