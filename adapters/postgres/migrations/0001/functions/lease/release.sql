-- Releases a lease (ports.Consumer.Release), and sends a wake-up through a channel by the same
-- commit, unless p_channel is NULL. Returns a status as of lock_lease.
CREATE FUNCTION {schema}.release(p_queue text, p_index int, p_owner text, p_token bigint, p_now bigint, p_channel text)
RETURNS text LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_ttl CONSTANT bigint := 5000000; -- bounds waits for locks as a lease of 5 s does
  v_lease record;
BEGIN
  SELECT * INTO v_lease FROM {schema}.lock_lease(p_queue, p_index, p_owner, p_token, c_ttl, p_now);
  IF v_lease.status = 'ok' THEN
    PERFORM {schema}.fold(v_lease.shard, v_lease.now, v_lease.last, v_lease.ttl, v_lease.expires, v_lease.floor, v_lease.rescan);
    UPDATE {schema}.shards SET held = false WHERE id = v_lease.shard;
    PERFORM pg_notify(p_channel, p_queue || '/' || p_index) WHERE p_channel IS NOT NULL;
  END IF;
  RETURN v_lease.status;
END {$};
