-- History: what a shard counted in each minute of the last 25 hours.
CREATE TABLE {schema}.minute_stats (
  shard     int NOT NULL,
  at        bigint NOT NULL,
  processed bigint NOT NULL,
  failed    bigint NOT NULL,
  wait      bigint[] NOT NULL,
  run       bigint[] NOT NULL,
  PRIMARY KEY (shard, at)
) WITH (fillfactor = 50);
COMMENT ON COLUMN {schema}.minute_stats.at IS 'The beginning of the minute';
COMMENT ON COLUMN {schema}.minute_stats.wait IS 'Wait times: counts by bucket of core.Histogram, without zeros at the end';
COMMENT ON COLUMN {schema}.minute_stats.run IS 'Run times, likewise';
