-- Merges at most p_inbox_limit rows of a shard's inbox, and returns when the shard can next give a
-- job: NULL if never, now if the inbox holds more. The caller holds the shard's lock and has
-- read paused and inbox_from of its row.
CREATE FUNCTION {schema}.merge_and_look(p_shard int, p_paused boolean, p_inbox_from xid8, p_inbox_limit int, p_now bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  PERFORM {schema}.merge_inbox(p_shard, p_inbox_from, p_inbox_limit);
  RETURN CASE WHEN p_paused THEN NULL
    WHEN EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.tx >= {schema}.scan_from(p_inbox_from)) THEN p_now
    ELSE {schema}.head(p_shard, (SELECT l.floor FROM {schema}.leases l WHERE l.shard = p_shard)) END;
END {$};
