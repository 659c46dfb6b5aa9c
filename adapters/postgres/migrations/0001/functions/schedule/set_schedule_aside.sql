-- Moves the record p_stored of a schedule to the quarantine, with the reason why it can't be read.
-- Returns whether it was still there.
CREATE FUNCTION {schema}.set_schedule_aside(p_queue text, p_index int, p_now bigint, p_id text, p_name text, p_stored text, p_reason text)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_locked record;
BEGIN
  SELECT * INTO v_locked FROM {schema}.lock_shard(p_queue, p_index, p_now);
  DELETE FROM {schema}.schedules t
  WHERE t.shard = v_locked.shard AND t.id = p_id COLLATE "C" AND t.name = p_name COLLATE "C" AND t.record::text = p_stored COLLATE "C";
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM {schema}.count_schedules(v_locked.shard, p_name, -1);
  INSERT INTO {schema}.quarantine (shard, id, since, reason, stored) VALUES (v_locked.shard, p_id, v_locked.now, p_reason, p_stored);
  RETURN true;
END {$};
