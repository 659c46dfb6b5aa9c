-- The morgue: one row per dead letter. Its payloads are in dead_letter_payloads. A dead letter on its
-- way into the morgue is a row of this type.
CREATE TABLE {schema}.dead_letters (
  shard      int NOT NULL,
  id         text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  failures   jsonb,
  tags       text NOT NULL DEFAULT '',
  grp        text COLLATE "C" NOT NULL,
  PRIMARY KEY (shard, id),
  CONSTRAINT dead_letters_times CHECK (changed_at BETWEEN 0 AND 9007199254740992) -- core.MaxInstant
);
CREATE INDEX dead_letters_time ON {schema}.dead_letters (shard, changed_at, id);
CREATE INDEX dead_letters_group ON {schema}.dead_letters (shard, grp, changed_at, id);
COMMENT ON COLUMN {schema}.dead_letters.changed_at IS 'When a payload was last added or edited';
COMMENT ON COLUMN {schema}.dead_letters.failures IS 'As jobs.failures; the newest is why the newest payload was buried';
COMMENT ON COLUMN {schema}.dead_letters.tags IS 'As jobs.tags, of all its jobs';
COMMENT ON COLUMN {schema}.dead_letters.grp IS 'The group that it is counted in: see dead_groups';
