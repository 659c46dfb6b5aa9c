-- Begins an operator's step: locks a shard and reads the clock. Before that it merges what
-- transactions had left in the shard's inbox. status is ok, unknown_queue or no_such_shard.
CREATE FUNCTION {schema}.lock_shard(p_queue text, p_index int, p_now bigint,
  OUT status text, OUT shard int, OUT now bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
BEGIN
  SELECT s.id INTO shard FROM {schema}.shards s
  WHERE s.id = {schema}.find_shard(p_queue, p_index) FOR UPDATE;
  IF NOT FOUND THEN
    status := {schema}.missing_shard(p_queue);
    now := {schema}.clock(p_now);
    RETURN;
  END IF;
  status := 'ok';
  now := {schema}.clock(p_now);
END {$};
