-- Counts payloads that a shard's merge rule has dropped.
CREATE FUNCTION {schema}.count_superseded(p_shard int, p_superseded int) RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF p_superseded > 0 THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, superseded)
    VALUES (p_shard, 0, 0, 0, 0, 0, p_superseded);
  END IF;
END {$};
