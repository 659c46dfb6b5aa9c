-- Sends a wake-up through a channel for each shard whose head is not before its instant in p_dues,
-- or for which that instant is before the floor, or which has no head but an inbox to merge, and
-- for each queue's permits, which have index -1. Returns the positions of those shards, from 0. It
-- does not wait for the disk: a wake-up may be lost.
CREATE FUNCTION {schema}.notify_wakeups(p_channel text, p_queues text[], p_indexes int[], p_dues bigint[])
RETURNS SETOF int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
DECLARE
  v_off text := set_config('synchronous_commit', 'off', true);
BEGIN
  FOR n IN 1..cardinality(p_queues) LOOP
    IF p_indexes[n] = -1 THEN
      PERFORM pg_notify(p_channel, p_queues[n] || '/-1');
      RETURN NEXT n - 1;
      CONTINUE;
    END IF;
    PERFORM pg_notify(p_channel, p_queues[n] || '/' || p_indexes[n]) FROM {schema}.leases l
    WHERE l.shard = {schema}.find_shard(p_queues[n], p_indexes[n])
      AND (p_dues[n] < l.floor OR coalesce({schema}.head(l.shard, l.floor) >= p_dues[n], EXISTS (SELECT FROM {schema}.inbox_rows(l.shard, 1))));
    IF FOUND THEN
      RETURN NEXT n - 1;
    END IF;
  END LOOP;
END {$};
