-- Merges some of a shard's inbox, and returns when the shard can next give a job: NULL if never,
-- now if the inbox holds more. The caller holds the shard's lock.
CREATE FUNCTION {schema}.merge_and_look(p_shard int, p_paused boolean, p_now bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF EXISTS (SELECT FROM {schema}.inbox_rows(p_shard, 1)) THEN
    PERFORM {schema}.merge_inbox(p_shard);
    IF NOT p_paused AND EXISTS (SELECT FROM {schema}.inbox_rows(p_shard, 1)) THEN
      RETURN p_now;
    END IF;
  END IF;
  RETURN CASE WHEN NOT p_paused THEN {schema}.head(p_shard, (SELECT l.floor FROM {schema}.leases l WHERE l.shard = p_shard)) END;
END {$};
