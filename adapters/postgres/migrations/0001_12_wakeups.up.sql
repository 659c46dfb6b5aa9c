-- Wake-ups.

-- Tells those who listen on a channel of shards that have a head, not before the instant of
-- each, or that is before the floor, and gives their positions from 0. It does not wait for
-- the disk: a wake-up may be lost.
CREATE FUNCTION {schema}.tell(p_channel text, p_queues text[], p_indexes int[], p_dues bigint[])
RETURNS SETOF int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  v_off text := set_config('synchronous_commit', 'off', true);
BEGIN
  FOR n IN 1..cardinality(p_queues) LOOP
    PERFORM pg_notify(p_channel, p_queues[n] || '/' || p_indexes[n]) FROM {schema}.leases l
    WHERE l.shard = {schema}.shard_number(p_queues[n], p_indexes[n])
      AND (p_dues[n] < l.floor OR {schema}.head(l.shard, l.floor) >= p_dues[n]);
    IF FOUND THEN
      RETURN NEXT n - 1;
    END IF;
  END LOOP;
END {$};
