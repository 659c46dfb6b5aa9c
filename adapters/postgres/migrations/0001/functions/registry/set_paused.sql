-- Pauses or resumes all shards of a queue, locking them in their order, and returns how many it
-- has.
CREATE FUNCTION {schema}.set_paused(p_queue text, p_paused boolean) RETURNS int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_shards int[];
BEGIN
  v_shards := ARRAY(SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" ORDER BY s.id FOR UPDATE);
  UPDATE {schema}.shards s SET paused = p_paused WHERE s.id = ANY (v_shards) AND s.paused <> p_paused;
  RETURN cardinality(v_shards);
END {$};
