-- Renews a lease (ports.Consumer.Renew). In a shard that makes no turns, only this finds jobs that
-- came below the floor because their push took long to commit. status is as of lock_lease; head is
-- when the shard can next give a job, NULL if never.
CREATE FUNCTION {schema}.renew(p_queue text, p_index int, p_owner text, p_token bigint, p_ttl bigint, p_now bigint,
  OUT status text, OUT now bigint, OUT remaining bigint, OUT paused boolean, OUT head bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_lease record;
BEGIN
  SELECT * INTO v_lease FROM {schema}.lock_lease(p_queue, p_index, p_owner, p_token, p_ttl, p_now);
  status := v_lease.status;
  now := v_lease.now;
  IF status <> 'ok' THEN
    RETURN;
  END IF;
  SELECT * INTO v_lease.floor, v_lease.rescan FROM {schema}.rescan_if_due(v_lease.shard, v_lease.floor, v_lease.rescan, now);
  PERFORM {schema}.fold(v_lease.shard, now, v_lease.last, p_ttl, {schema}.later(now, p_ttl), v_lease.floor, v_lease.rescan);
  remaining := {schema}.remaining({schema}.later(now, p_ttl), p_ttl, now);
  paused := v_lease.paused;
  head := {schema}.merge_and_look(v_lease.shard, v_lease.paused, now);
  PERFORM {schema}.prune_once(v_lease.shard, now);
END {$};
