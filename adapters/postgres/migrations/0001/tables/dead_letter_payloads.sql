-- The payloads of dead letters.
CREATE TABLE {schema}.dead_letter_payloads (
  shard  int NOT NULL,
  id     text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  score  double precision NOT NULL,
  data   bytea NOT NULL,
  meta   bytea,
  PRIMARY KEY (shard, id, digest),
  CONSTRAINT dead_letter_payloads_score CHECK (score > '-Infinity' AND score < 'Infinity') -- NaN is larger than all
);
-- As payloads_order.
CREATE INDEX dead_letter_payloads_order ON {schema}.dead_letter_payloads (shard, id, score, substr(data, 1, 256));
COMMENT ON COLUMN {schema}.dead_letter_payloads.digest IS 'sha256(data)';
