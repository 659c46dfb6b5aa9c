-- What became of ids: one row for each id whose last done run is recorded (core.Past). A record on its
-- way into the table is a row of this type.
CREATE TABLE {schema}.past (
  shard    int NOT NULL,
  id       text COLLATE "C" NOT NULL,
  done_at  bigint NOT NULL,
  started  bigint NOT NULL,
  took     bigint NOT NULL,
  score    float8 NOT NULL,
  payloads int NOT NULL,
  attempt  int NOT NULL,
  node     text NOT NULL,
  result   bytea,
  PRIMARY KEY (shard, id),
  CONSTRAINT past_times CHECK (done_at BETWEEN 0 AND 9007199254740992) -- core.MaxInstant
);
CREATE INDEX past_time ON {schema}.past (shard, done_at, id);
COMMENT ON COLUMN {schema}.past.done_at IS 'When the job was settled';
COMMENT ON COLUMN {schema}.past.started IS 'When the run began, by the server''s estimate of the clock';
COMMENT ON COLUMN {schema}.past.took IS 'How long the handler ran, in microseconds';
COMMENT ON COLUMN {schema}.past.score IS 'The highest of the payloads';
COMMENT ON COLUMN {schema}.past.attempt IS '1 for a job that had not failed';
COMMENT ON COLUMN {schema}.past.result IS 'NULL for none';
