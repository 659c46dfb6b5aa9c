-- Returns the claims of a shard that a turn has claimed or was handed, and that are still claimed.
-- For a turn that is sent again it is a statement of its own, after the commit of the turn: a turn
-- locks the shard until its reply is on its way, and a renewal waits for that lock. Behind a slow
-- link large payloads would take longer than the lease lasts. Like a turn, it fails on a standby,
-- which may not have the turn yet and would return no claims.
CREATE FUNCTION {schema}.turn_claims(p_queue text, p_index int, p_token bigint, p_number bigint)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  v_shard int := {schema}.find_shard(p_queue, p_index);
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'cannot return the claims of a turn in a read-only transaction';
  END IF;
  RETURN QUERY SELECT * FROM {schema}.reply_claims(v_shard, ARRAY(
    SELECT c.id FROM {schema}.claimed c WHERE c.shard = v_shard AND c.token = p_token AND c.number = p_number));
  RETURN QUERY SELECT * FROM {schema}.reply_claims(v_shard, ARRAY(
    SELECT c.id FROM {schema}.claimed c WHERE c.shard = v_shard AND c.handed_token = p_token AND c.handed_number = p_number));
END {$};
