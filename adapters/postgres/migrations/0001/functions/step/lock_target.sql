-- Begins an import: locks a shard as lock_shard does. The caller's layout has p_shards shards and
-- p_generation, and if p_only_paused is set the shard must be paused, else status is not_paused.
CREATE FUNCTION {schema}.lock_target(p_queue text, p_index int, p_now bigint, p_shards int, p_generation bigint, p_only_paused boolean,
  OUT status text, OUT shard int, OUT now bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
BEGIN
  SELECT l.status, l.shard, l.now INTO status, lock_target.shard, now FROM {schema}.lock_shard(p_queue, p_index, p_now) l;
  IF NOT EXISTS (
    SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" AND q.shards = p_shards AND q.generation = p_generation
  ) THEN
    status := {schema}.missing_layout(p_queue);
  ELSIF p_only_paused AND status = 'ok' AND NOT (SELECT s.paused FROM {schema}.shards s WHERE s.id = lock_target.shard) THEN
    status := 'not_paused';
  END IF;
END {$};
