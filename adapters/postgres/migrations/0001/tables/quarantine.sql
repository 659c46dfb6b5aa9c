-- Records that programs can't read, set aside with their stored text (ports.Quarantine). Only
-- records of schedules can be so: those of jobs have typed columns, and failures that can't be read
-- are shown as text.
CREATE TABLE {schema}.quarantine (
  shard  int NOT NULL,
  key    text COLLATE "C" NOT NULL DEFAULT gen_random_uuid(),
  id     text COLLATE "C" NOT NULL,
  since  bigint NOT NULL,
  reason text NOT NULL,
  stored text NOT NULL,
  PRIMARY KEY (shard, key)
);
COMMENT ON COLUMN {schema}.quarantine.key IS 'Never used again';
