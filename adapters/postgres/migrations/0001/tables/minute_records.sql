-- An owner's counts of a queue in a minute, for the last 25 hours.
CREATE TABLE {schema}.minute_records (
  queue   int NOT NULL,
  minute  bigint NOT NULL,
  owner   text COLLATE "C" NOT NULL,
  counted bigint NOT NULL,
  stats   bytea NOT NULL,
  PRIMARY KEY (queue, minute, owner)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.minute_records.minute IS 'Its beginning';
COMMENT ON COLUMN {schema}.minute_records.counted IS 'How much was counted: of two rows the one with more is the newer';
COMMENT ON COLUMN {schema}.minute_records.stats IS 'The counts, as storekit.AppendStats packs them';
