-- One row per limiter of a queue: of the whole queue, whose key is empty, or of a key. A take locks
-- its rows in order of key. All times are in rows alone and in no index, so that a take is an
-- update within the page. A row that is gone (core.Limiter.Gone) no longer counts, and takes and
-- stops of the queue delete it.
CREATE TABLE {schema}.limiters (
  queue   int NOT NULL,
  key     text COLLATE "C" NOT NULL,
  next    bigint NOT NULL,
  started bigint NOT NULL,
  last    bigint NOT NULL,
  stopped bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (queue, key)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.limiters.next IS 'The next slot at an even pace';
COMMENT ON COLUMN {schema}.limiters.started IS 'The next use of a slot at an even pace';
COMMENT ON COLUMN {schema}.limiters.last IS 'The latest slot that was granted, or the latest use of one';
COMMENT ON COLUMN {schema}.limiters.stopped IS 'The end of the last stop, 0 without one';
COMMENT ON COLUMN {schema}.limiters.changed IS 'The time of the last change; a clock before it has stepped back';
