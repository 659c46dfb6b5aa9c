-- Makes sure that a queue exists. Returns its record, which the caller compares with its request.
CREATE FUNCTION {schema}.declare(p_queue text, p_shards int, p_index_ids boolean, p_merge_rule int, p_same_push boolean,
  OUT shards int, OUT generation bigint, OUT index_ids boolean, OUT merge_rule int, OUT same_push boolean)
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '500ms' AS {$}
DECLARE
  v_id int;
BEGIN
  FOR i IN 1..2 LOOP
    SELECT q.shards, q.generation, q.index_ids, q.merge_rule, q.same_push INTO shards, generation, index_ids, merge_rule, same_push FROM {schema}.queues q
    WHERE q.name = p_queue COLLATE "C";
    EXIT WHEN FOUND OR i = 2;
    LOCK TABLE {schema}.queues IN SHARE ROW EXCLUSIVE MODE;
    CONTINUE WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C");
    INSERT INTO {schema}.queues AS q (name, shards, generation, index_ids, merge_rule, same_push)
    VALUES (p_queue, p_shards, 1, p_index_ids, p_merge_rule, p_same_push)
    RETURNING q.id INTO v_id;
    INSERT INTO {schema}.shards (id, queue, index, merge_rule)
    SELECT {schema}.first_shard(v_id) + n, p_queue, n, p_merge_rule FROM generate_series(0, p_shards - 1) n;
  END LOOP;
END {$};
