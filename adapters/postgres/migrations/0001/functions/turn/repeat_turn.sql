-- Returns the reply to a repeated turn, and renews the lease. p_last, p_floor and p_rescan are of
-- the newest row of turn_log, p_resent is as in turn.
CREATE FUNCTION {schema}.repeat_turn(p_shard {schema}.shards, p_now bigint, p_last bigint, p_ttl bigint, p_floor bigint, p_rescan bigint,
  p_resent boolean)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_reply   {schema}.reply;
  v_expires bigint := {schema}.later(p_now, p_ttl);
  v_head    bigint;
BEGIN
  PERFORM {schema}.fold(p_shard.id, p_now, p_last, p_ttl, v_expires, p_floor, p_rescan);
  v_head := {schema}.merge_and_look(p_shard.id, p_shard.paused, p_now);
  IF p_shard.orphans AND NOT p_shard.paused THEN
    v_head := least(v_head, p_now);
  END IF;
  v_reply.header := {schema}.reply_header('repeated', p_paused => p_shard.paused, p_now => p_now, p_last => p_last,
    p_remaining => {schema}.remaining(v_expires, p_ttl, p_now),
    p_head => v_head, p_lease_token => p_shard.token, p_lease_owner => p_shard.owner);
  RETURN NEXT v_reply;
  IF NOT p_resent THEN
    RETURN QUERY SELECT * FROM {schema}.turn_claims(p_shard.queue, p_shard.index, p_shard.token, p_last);
  END IF;
  v_reply.header := {schema}.reply_cancellations(p_shard.id);
  IF v_reply.header IS NOT NULL THEN
    RETURN NEXT v_reply;
  END IF;
END {$};
