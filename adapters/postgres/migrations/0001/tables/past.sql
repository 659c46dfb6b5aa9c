-- What became of ids: one row for each id whose last done run is recorded (core.Past), and one for each
-- id with a mark of its own (core.Mark), of which only score and done_at say something. A record on
-- its way into the table is a row of this type.
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
  mark     boolean NOT NULL DEFAULT false,
  raises   boolean NOT NULL DEFAULT false,
  result   bytea,
  PRIMARY KEY (shard, id, mark),
  CONSTRAINT past_times CHECK (done_at BETWEEN 0 AND 9007199254740992) -- core.MaxInstant
);
CREATE INDEX past_time ON {schema}.past (shard, done_at, id, mark);
COMMENT ON COLUMN {schema}.past.done_at IS 'When the job was settled, or the mark raised';
COMMENT ON COLUMN {schema}.past.started IS 'When the run began, by the server''s estimate of the clock';
COMMENT ON COLUMN {schema}.past.took IS 'How long the handler ran, in microseconds';
COMMENT ON COLUMN {schema}.past.score IS 'The highest of the payloads, or the mark';
COMMENT ON COLUMN {schema}.past.attempt IS '1 for a job that had not failed';
COMMENT ON COLUMN {schema}.past.mark IS 'Whether the row is the mark of the id, and no record of a run';
COMMENT ON COLUMN {schema}.past.raises IS 'Whether score counts for the mark of the id';
COMMENT ON COLUMN {schema}.past.result IS 'NULL for none';
