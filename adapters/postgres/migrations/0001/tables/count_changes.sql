-- Changes of a shard's counts that were made outside of turns. Rows are only inserted, and
-- deleted by the next fold.
CREATE TABLE {schema}.count_changes (
  shard      int NOT NULL,
  fresh      int NOT NULL,
  retrying   int NOT NULL,
  claimed    int NOT NULL DEFAULT 0,
  dead       int NOT NULL,
  processed  int NOT NULL,
  failed     int NOT NULL,
  superseded int NOT NULL DEFAULT 0,
  stale      int NOT NULL DEFAULT 0,
  repeated   int NOT NULL DEFAULT 0,
  past       int NOT NULL DEFAULT 0,
  past_bytes bigint NOT NULL DEFAULT 0,
  tx         xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX count_changes_shard ON {schema}.count_changes (shard, tx);
