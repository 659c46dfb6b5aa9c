-- The sums of a queue's minute_records by day, also of those that are deleted. There are at most 33
-- days of a queue.
CREATE TABLE {schema}.day_records (
  queue  int NOT NULL,
  day    bigint NOT NULL,
  sums   float8[] NOT NULL CHECK (cardinality(sums) = 134 AND array_position(sums, NULL) IS NULL),
  closed bigint NOT NULL DEFAULT -1,
  PRIMARY KEY (queue, day)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.day_records.day IS 'Its beginning, in UTC';
COMMENT ON COLUMN {schema}.day_records.sums IS 'Processed, Failed, WaitSum, RunSum, WaitSquares, RunSquares, and the buckets of Wait and of Run, 64 each';
COMMENT ON COLUMN {schema}.day_records.closed IS 'The last minute with deleted records; they are in the sums, so that minute and earlier ones are no longer recorded';
