-- Records a change of a shard's counts, outside of a turn.
CREATE FUNCTION {schema}.change_counts(p_shard int, p_fresh int, p_retrying int, p_dead int)
RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF p_fresh <> 0 OR p_retrying <> 0 OR p_dead <> 0 THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed)
    VALUES (p_shard, p_fresh, p_retrying, p_dead, 0, 0);
  END IF;
END {$};
