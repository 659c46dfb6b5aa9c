-- Returns the merge rule of a shard's queue: see queues.merge_rule.
CREATE FUNCTION {schema}.rule_of(p_shard int) RETURNS int LANGUAGE sql STABLE AS {$}
  SELECT s.merge_rule FROM {schema}.shards s WHERE s.id = p_shard
{$};
