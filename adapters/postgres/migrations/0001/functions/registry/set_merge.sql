-- Changes the merge rule of a queue and of all its shards, locking them in their order, unless
-- p_same_push is not the queue's. Returns the rule that the queue had, and how many shards it has.
CREATE FUNCTION {schema}.set_merge(p_queue text, p_merge_rule int, p_same_push boolean, OUT merge_rule int, OUT same_push boolean, OUT shards int)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  v_shards int[];
BEGIN
  SELECT q.merge_rule, q.same_push, q.shards INTO merge_rule, same_push, shards FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    merge_rule := 0; same_push := false; shards := 0;
  ELSIF same_push = p_same_push THEN
    v_shards := ARRAY(SELECT s.id FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" ORDER BY s.id FOR UPDATE);
    UPDATE {schema}.shards s SET merge_rule = p_merge_rule WHERE s.id = ANY (v_shards) AND s.merge_rule <> p_merge_rule;
    UPDATE {schema}.queues q SET merge_rule = p_merge_rule WHERE q.name = p_queue COLLATE "C" AND q.merge_rule <> p_merge_rule;
  END IF;
END {$};
