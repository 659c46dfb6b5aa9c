-- The other payloads of queued jobs that have several. A row is written only under the lock of its
-- job's row.
CREATE TABLE {schema}.payloads (
  shard  int NOT NULL,
  id     text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  score  double precision NOT NULL,
  data   bytea NOT NULL,
  meta   bytea,
  PRIMARY KEY (shard, id, digest),
  CONSTRAINT payloads_score CHECK (score > '-Infinity' AND score < 'Infinity') -- NaN is larger than all
);
-- The order in which they are claimed. An index entry has room only for the beginning of the data,
-- so only payloads that have the same score and begin alike are sorted.
CREATE INDEX payloads_order ON {schema}.payloads (shard, id, score, substr(data, 1, 256));
COMMENT ON COLUMN {schema}.payloads.digest IS 'sha256(data)';
