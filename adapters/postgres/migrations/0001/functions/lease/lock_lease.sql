-- Locks a shard and reads its row and lease, if the lease is this owner's under this token. status
-- is ok, unknown_queue, no_such_shard or lease_lost. Waits for locks are bounded by p_ttl.
CREATE FUNCTION {schema}.lock_lease(p_queue text, p_index int, p_owner text, p_token bigint, p_ttl bigint, p_now bigint,
  OUT status text, OUT shard int, OUT now bigint, OUT last bigint, OUT ttl bigint, OUT expires bigint, OUT floor bigint, OUT rescan bigint,
  OUT paused boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_lease {schema}.leases;
BEGIN
  PERFORM {schema}.limit_lock_waits(p_ttl);
  shard := {schema}.find_shard(p_queue, p_index);
  SELECT s.paused INTO paused FROM {schema}.shards s WHERE s.id = lock_lease.shard FOR UPDATE;
  IF NOT FOUND THEN
    status := {schema}.missing_shard(p_queue);
    RETURN;
  END IF;
  now := {schema}.clock(p_now);
  SELECT * INTO v_lease FROM {schema}.leases l WHERE l.shard = lock_lease.shard;
  last := v_lease.last; ttl := v_lease.ttl; expires := v_lease.expires; floor := v_lease.floor; rescan := v_lease.rescan;
  status := CASE WHEN v_lease.held AND v_lease.owner = p_owner AND v_lease.token = p_token THEN 'ok' ELSE 'lease_lost' END;
END {$};
