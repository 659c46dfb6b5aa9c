-- Adds statistics to a shard's current minute, and deletes those of minutes 25 hours ago.
CREATE FUNCTION {schema}.add_minute_stats(p_shard int, p_now bigint, p_processed bigint, p_failed bigint, p_wait bigint[], p_run bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_minute CONSTANT bigint := 60000000;
  c_kept   CONSTANT bigint := 25 * 60 * c_minute;
BEGIN
  INSERT INTO {schema}.minute_stats AS m (shard, at, processed, failed, wait, run)
  VALUES (p_shard, p_now - p_now % c_minute, p_processed, p_failed, p_wait, p_run)
  ON CONFLICT (shard, at) DO UPDATE SET
    processed = m.processed + excluded.processed,
    failed = m.failed + excluded.failed,
    wait = {schema}.add_histograms(m.wait, excluded.wait),
    run = {schema}.add_histograms(m.run, excluded.run);
  DELETE FROM {schema}.minute_stats m WHERE m.shard = p_shard AND m.at < p_now - c_kept;
END {$};
