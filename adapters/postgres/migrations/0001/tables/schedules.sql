-- Schedules, which push for their ids at their ticks (ports.Calendar). Every change of one holds
-- the lock of its shard's row, so that turns and changes of a shard follow one another.
CREATE TABLE {schema}.schedules (
  shard    int NOT NULL,
  id       text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  tick     bigint,
  revision bigint NOT NULL,
  record   json NOT NULL,
  PRIMARY KEY (shard, id, name),
  CONSTRAINT schedules_revision CHECK (revision > 0)
);
CREATE INDEX schedules_name ON {schema}.schedules (shard, name, id);
CREATE INDEX schedules_tick ON {schema}.schedules (shard, tick, id, name) WHERE tick IS NOT NULL;
COMMENT ON COLUMN {schema}.schedules.tick IS 'When a server looks at it next; NULL if never';
COMMENT ON COLUMN {schema}.schedules.revision IS 'That of the record; a change names the one that it replaces';
COMMENT ON COLUMN {schema}.schedules.record IS 'The schedule, as storekit.EncodeSchedule writes it';
