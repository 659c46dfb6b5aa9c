-- Adds p_change to the number of a shard's schedules of a name. The caller holds the shard's lock.
CREATE FUNCTION {schema}.count_schedules(p_shard int, p_name text, p_change int) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
BEGIN
  INSERT INTO {schema}.schedule_names AS n (shard, name, count) VALUES (p_shard, p_name, p_change)
  ON CONFLICT (shard, name) DO UPDATE SET count = n.count + p_change;
  IF p_change < 0 THEN
    DELETE FROM {schema}.schedule_names n WHERE n.shard = p_shard AND n.name = p_name COLLATE "C" AND n.count <= 0;
  END IF;
END {$};
