-- The log of turns: one inserted row per turn, with its changes, deleted by the next fold.
CREATE TABLE {schema}.turn_log (
  shard      int NOT NULL,
  token      bigint NOT NULL,
  number     bigint NOT NULL,
  ttl        bigint NOT NULL,
  expires    bigint NOT NULL,
  floor      bigint NOT NULL,
  rescan     bigint NOT NULL,
  fresh      int NOT NULL,
  retrying   int NOT NULL,
  claimed    int NOT NULL,
  dead       int NOT NULL,
  processed  int NOT NULL,
  failed     int NOT NULL,
  past       bigint,
  past_bytes bigint,
  PRIMARY KEY (shard, token, number)
) WITH (autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
COMMENT ON COLUMN {schema}.turn_log.floor IS 'As in shards, after the turn; and rescan likewise';
COMMENT ON COLUMN {schema}.turn_log.fresh IS 'The change of the count; and those that follow likewise';
COMMENT ON COLUMN {schema}.turn_log.past IS 'The change of the number of records of ids since the last fold; NULL in turns that keep none; and past_bytes likewise';
