-- Acquires a shard for an owner (ports.Consumer.Acquire). Returns the header and, if its status is
-- ok, the claims of earlier leases and the cancellations. The header's head is now if some of
-- these claims could not be handed over yet.
CREATE FUNCTION {schema}.acquire(p_queue text, p_index int, p_shards int, p_generation bigint, p_owner text, p_attempt bigint,
  p_ttl bigint, p_now bigint)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS {$}
DECLARE
  c_bytes   CONSTANT bigint := 262144; -- core.AcquireBytes
  v_shard   int := {schema}.find_shard(p_queue, p_index);
  v_row     record;
  v_now     bigint;
  v_left    bigint;
  v_same    boolean;
  v_refused text;
  v_lease   {schema}.leases;
  v_repeat  boolean;
  v_more    boolean;
  v_ids     text[];
  v_head    bigint;
  v_reply   {schema}.reply;
BEGIN
  SELECT CASE WHEN q.shards <> p_shards OR q.generation <> p_generation THEN 'layout_mismatch' WHEN v_shard IS NULL THEN 'no_such_shard' END
  INTO v_refused FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    v_refused := 'unknown_queue';
  END IF;
  IF v_refused IS NOT NULL THEN
    v_reply.header := {schema}.reply_header(v_refused);
    RETURN NEXT v_reply;
    RETURN;
  END IF;
  PERFORM {schema}.limit_lock_waits(p_ttl);
  SELECT s.paused, s.orphans INTO v_row FROM {schema}.shards s WHERE s.id = v_shard FOR UPDATE;
  v_now := {schema}.clock(p_now);
  SELECT * INTO v_lease FROM {schema}.leases WHERE shard = v_shard;
  v_left := {schema}.remaining(v_lease.expires, v_lease.ttl, v_now);
  v_same := v_lease.owner = p_owner;

  IF v_same AND (p_attempt < v_lease.attempt OR p_attempt = v_lease.attempt AND NOT v_lease.held) THEN
    v_reply.header := {schema}.reply_header('stale_attempt', p_now => v_now, p_lease_token => v_lease.token, p_lease_owner => v_lease.owner);
    RETURN NEXT v_reply;
    RETURN;
  END IF;
  IF NOT v_same AND v_lease.held AND v_left > 0 THEN
    IF v_lease.expires > v_now + v_lease.ttl THEN -- the clock stepped back
      PERFORM {schema}.fold(v_shard, v_now, v_lease.last, v_lease.ttl, v_now + v_left, v_lease.floor, v_lease.rescan);
    END IF;
    v_reply.header := {schema}.reply_header('lease_held', p_now => v_now, p_remaining => v_left,
      p_lease_token => v_lease.token, p_lease_owner => v_lease.owner);
    RETURN NEXT v_reply;
    RETURN;
  END IF;
  v_repeat := v_same AND p_attempt = v_lease.attempt AND v_left > 0;
  IF NOT v_repeat THEN
    v_lease.token := greatest(v_lease.token + 1, v_now);
    v_lease.last := 0;
    -- In a database that was restored elsewhere, rows older than these marks may have come since.
    UPDATE {schema}.shards SET inbox_from = '0', inbox_seq = 0, inbox_open = NULL, counts_from = '0', counts_open = NULL
    WHERE id = v_shard;
  END IF;
  SELECT * INTO v_lease.floor, v_lease.rescan FROM {schema}.rescan_if_due(v_shard, v_lease.floor, v_lease.rescan, v_now);
  PERFORM {schema}.fold(v_shard, v_now, v_lease.last, p_ttl, {schema}.later(v_now, p_ttl), v_lease.floor, v_lease.rescan);
  IF v_repeat THEN
    v_ids := {schema}.handed_over(v_shard, v_lease.token, c_bytes);
    v_more := v_row.orphans;
  ELSE
    SELECT h.ids, h.more INTO v_ids, v_more FROM {schema}.hand_over(v_shard, v_lease.token, 0, c_bytes) h;
  END IF;
  UPDATE {schema}.shards SET held = true, owner = p_owner, attempt = p_attempt, token = v_lease.token, orphans = v_more
  WHERE id = v_shard;
  v_head := {schema}.merge_and_look(v_shard, v_row.paused, v_now);
  IF v_more AND NOT v_row.paused THEN
    v_head := least(v_head, v_now);
  END IF;
  v_reply.header := {schema}.reply_header('ok', p_paused => v_row.paused, p_now => v_now, p_last => v_lease.last, p_head => v_head,
    p_remaining => {schema}.remaining({schema}.later(v_now, p_ttl), p_ttl, v_now),
    p_lease_token => v_lease.token, p_lease_owner => p_owner);
  RETURN NEXT v_reply;
  RETURN QUERY SELECT * FROM {schema}.reply_claims(v_shard, v_ids);
  v_reply.header := {schema}.reply_cancellations(v_shard);
  IF v_reply.header IS NOT NULL THEN
    RETURN NEXT v_reply;
  END IF;
END {$};
