-- Renews a lease (ports.Consumer.Renew). In a shard that makes no turns, only this finds jobs
-- that came below the floor since their push took long to commit. status is as of lock_lease.
CREATE FUNCTION {schema}.renew(p_queue text, p_index int, p_owner text, p_token bigint, p_ttl bigint, p_now bigint,
  OUT status text, OUT now bigint, OUT remaining bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_lease record;
  v_began timestamptz;
  v_early bigint;
BEGIN
  SELECT * INTO v_lease FROM {schema}.lock_lease(p_queue, p_index, p_owner, p_token, p_ttl, p_now);
  status := v_lease.status;
  now := v_lease.now;
  IF status <> 'ok' THEN
    RETURN;
  END IF;
  IF {schema}.rescan_due(v_lease.rescan, now) THEN
    v_began := clock_timestamp();
    SELECT j.perform_at INTO v_early FROM {schema}.jobs j
    WHERE j.shard = v_lease.shard AND j.perform_at >= {schema}.rescan_from(now) AND j.perform_at < v_lease.floor
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
    ORDER BY j.perform_at, j.id LIMIT 1;
    v_lease.floor := least(v_lease.floor, v_early);
    v_lease.rescan := {schema}.next_rescan(now, v_began);
  END IF;
  PERFORM {schema}.fold(v_lease.shard, now, v_lease.last, p_ttl, {schema}.later(now, p_ttl), v_lease.floor, v_lease.rescan);
  remaining := {schema}.remaining({schema}.later(now, p_ttl), p_ttl, now);
END {$};
