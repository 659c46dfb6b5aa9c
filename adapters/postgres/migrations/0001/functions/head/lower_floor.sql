-- Makes claims look for due jobs from p_at on, if they would look only from later. The caller holds
-- the shard's lock.
CREATE FUNCTION {schema}.lower_floor(p_shard int, p_at bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
BEGIN
  UPDATE {schema}.turn_log t SET floor = p_at FROM {schema}.shards s
  WHERE s.id = p_shard AND t.shard = p_shard AND t.token = s.token AND t.number > s.last AND t.floor > p_at;
  UPDATE {schema}.shards SET floor = p_at WHERE id = p_shard AND floor > p_at;
END {$};
