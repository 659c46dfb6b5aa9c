-- Wake-ups.

-- Tells those who listen on a channel of shards that have no job of a claimable id that is
-- due before the instant of each, and gives their positions from 0. It does not wait for the
-- disk: a wake-up may be lost.
CREATE FUNCTION {schema}.tell(p_channel text, p_queues text[], p_indexes int[], p_dues bigint[])
RETURNS SETOF int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  v_off text := set_config('synchronous_commit', 'off', true);
BEGIN
  FOR n IN 1..cardinality(p_queues) LOOP
    PERFORM pg_notify(p_channel, p_queues[n] || '/' || p_indexes[n]) FROM {schema}.leases l
    WHERE l.shard = (
      SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queues[n] COLLATE "C" AND s.index = p_indexes[n]
    ) AND NOT EXISTS (
      SELECT FROM {schema}.jobs j
      WHERE j.shard = l.shard AND j.perform_at >= l.floor AND j.perform_at < p_dues[n]
        AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL);
    IF FOUND THEN
      RETURN NEXT n - 1;
    END IF;
  END LOOP;
END {$};
