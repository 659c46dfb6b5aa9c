-- Counts stale payloads that were dropped.
CREATE FUNCTION {schema}.count_stale(p_shard int, p_stale int) RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF p_stale > 0 THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, stale)
    VALUES (p_shard, 0, 0, 0, 0, 0, p_stale);
  END IF;
END {$};
