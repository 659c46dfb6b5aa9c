-- The number of a shard's schedules of each name, so that names are listed without a look at all
-- their schedules. A change of schedules changes it too, under the shard's lock.
CREATE TABLE {schema}.schedule_names (
  shard int NOT NULL,
  name  text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (shard, name)
) WITH (fillfactor = 50);
