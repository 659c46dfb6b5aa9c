-- Locks a shard, merges its whole inbox and reads the clock: what each operator's step begins with.
-- status is ok, unknown_queue or no_such_shard.
CREATE FUNCTION {schema}.lock_shard(p_queue text, p_index int, p_now bigint,
  OUT status text, OUT shard int, OUT now bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_rows CONSTANT int := 5000;
  v_inbox_from xid8;
BEGIN
  SELECT s.id, s.inbox_from INTO shard, v_inbox_from FROM {schema}.shards s
  WHERE s.id = {schema}.find_shard(p_queue, p_index) FOR UPDATE;
  IF NOT FOUND THEN
    status := {schema}.missing_shard(p_queue);
    now := {schema}.clock(p_now);
    RETURN;
  END IF;
  status := 'ok';
  now := {schema}.clock(p_now);
  WHILE {schema}.merge_inbox(shard, v_inbox_from, c_rows) LOOP
  END LOOP;
END {$};
