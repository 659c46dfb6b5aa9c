-- The number of a shard's dead letters in each group. A change of the morgue changes it too, under
-- the shard's lock; a recount, which takes no such lock, adds differences.
CREATE TABLE {schema}.dead_groups (
  shard    int NOT NULL,
  grp      text COLLATE "C" NOT NULL,
  count    bigint NOT NULL,
  first_at bigint NOT NULL,
  last_at  bigint NOT NULL,
  PRIMARY KEY (shard, grp)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.dead_groups.first_at IS 'The earliest instant at which one was buried since the group was empty';
COMMENT ON COLUMN {schema}.dead_groups.last_at IS 'The latest one, of dead letters that are gone since too';
