-- The tracked ids of each queue, at most 1,000. A change of them locks the queue's row in queues
-- FOR NO KEY UPDATE, which pushes, turns and declarations do not wait for.
CREATE TABLE {schema}.tracked (
  queue int NOT NULL,
  id    text COLLATE "C" NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (queue, id)
);
COMMENT ON COLUMN {schema}.tracked.since IS 'When it was added';
