-- Claims the jobs at the places that choose_due has chosen, except those that a push has locked or
-- for which the inbox holds something by now. Returns the claimed ids, the bytes of their
-- payloads, and how the counts change.
CREATE FUNCTION {schema}.claim_together(p_shard int, p_places tid[], p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, OUT ids text[], OUT bytes bigint, OUT fresh int, OUT retrying int)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_alone CONSTANT int := 2; -- core.AloneRecoveries
  v_locked tid[] := ARRAY(SELECT j.ctid FROM {schema}.jobs j WHERE j.ctid = ANY (p_places) FOR UPDATE SKIP LOCKED);
BEGIN
  -- A push may have changed a job after it was chosen and before it was locked.
  WITH taken AS (
    DELETE FROM {schema}.jobs j
    WHERE j.ctid = ANY (v_locked)
      AND (j.shard = p_shard AND j.perform_at <= p_now AND NOT j.has_more AND j.recoveries < c_alone) IS TRUE -- for no index
      AND (SELECT i.shard FROM {schema}.inbox i WHERE i.shard + 0 = j.shard AND i.id = j.id
        AND i.kind IN ('push', 'put_back') LIMIT 1) IS NULL
    RETURNING j.*
  ), put AS (
    INSERT INTO {schema}.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, id,
      node, owner, failures, tags, slot, data, meta)
    SELECT p_token, p_number, j.perform_at, j.first_push, p_now, j.score, j.shard, j.retry_count, j.recoveries, j.id,
      p_node, p_owner, j.failures, j.tags, j.slot, j.data, j.meta FROM taken j
    RETURNING id, retry_count, octet_length(data) AS size
  )
  SELECT array_agg(c.id), sum(c.size), - count(*) FILTER (WHERE c.retry_count < 0), - count(*) FILTER (WHERE c.retry_count >= 0)
  INTO ids, bytes, fresh, retrying FROM put c;
END {$};
