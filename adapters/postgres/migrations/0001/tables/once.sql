-- What shards remember of entries that are accepted once within a time (docs/rules.md 17).
CREATE TABLE {schema}.once (
  shard int NOT NULL,
  key   uuid NOT NULL,
  since bigint NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (shard, key)
);
CREATE INDEX once_until ON {schema}.once (shard, until);
COMMENT ON COLUMN {schema}.once.key IS 'core.OnceKey, a hash of id and payload';
COMMENT ON COLUMN {schema}.once.since IS 'When the entry was accepted';
COMMENT ON COLUMN {schema}.once.until IS 'When its time ends';
