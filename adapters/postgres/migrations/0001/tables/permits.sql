-- One row per owner that holds permits to run batches of a queue, or wants some. A change of them
-- locks the queue's row in queues FOR NO KEY UPDATE, which pushes, turns and declarations do not
-- wait for. An expired row no longer counts, and the next call for the queue deletes it.
CREATE TABLE {schema}.permits (
  queue   int NOT NULL,
  owner   text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL,
  held    bigint NOT NULL,
  wanted  bigint NOT NULL,
  ttl     bigint NOT NULL,
  expires bigint NOT NULL,
  PRIMARY KEY (queue, owner)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.permits.attempt IS 'The owner''s number of its last call';
COMMENT ON COLUMN {schema}.permits.wanted IS 'How many it could use, those that it holds included';
