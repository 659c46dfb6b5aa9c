-- Adds everything that is not folded yet to a shard's row, and writes p_last, p_ttl, p_expires,
-- p_floor and p_rescan there, so that the row is newer than turn_log. Rows of count_changes and of
-- the inbox from transactions that have ended are not read again. The caller holds the shard's
-- lock.
CREATE FUNCTION {schema}.fold(p_shard int, p_now bigint, p_last bigint, p_ttl bigint, p_expires bigint, p_floor bigint, p_rescan bigint)
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_shard {schema}.shards;
  v_log   record;
  v_other record;
  v_mark  record;
BEGIN
  SELECT * INTO v_shard FROM {schema}.shards WHERE id = p_shard;
  WITH gone AS (
    DELETE FROM {schema}.turn_log t WHERE t.shard = p_shard AND t.token = v_shard.token AND t.number > v_shard.last RETURNING t.*
  )
  SELECT coalesce(sum(fresh), 0) AS fresh, coalesce(sum(retrying), 0) AS retrying,
    coalesce(sum(claimed), 0) AS claimed, coalesce(sum(dead), 0) AS dead,
    coalesce(sum(processed), 0) AS processed, coalesce(sum(failed), 0) AS failed,
    coalesce((array_agg(past ORDER BY number DESC) FILTER (WHERE past IS NOT NULL))[1], 0) AS past,
    coalesce((array_agg(past_bytes ORDER BY number DESC) FILTER (WHERE past IS NOT NULL))[1], 0) AS past_bytes
  INTO v_log FROM gone;
  SELECT * INTO v_other FROM {schema}.take_count_changes(p_shard, v_shard.counts_from, v_shard.counts_open);
  v_mark := {schema}.inbox_mark(p_shard);

  UPDATE {schema}.shards SET
    last = p_last, ttl = p_ttl, expires = p_expires, renewed = p_now, floor = p_floor, rescan = p_rescan,
    fresh = v_shard.fresh + v_log.fresh + v_other.fresh,
    retrying = v_shard.retrying + v_log.retrying + v_other.retrying,
    claimed = v_shard.claimed + v_log.claimed + v_other.claimed,
    dead = v_shard.dead + v_log.dead + v_other.dead,
    processed = v_shard.processed + v_log.processed + v_other.processed,
    failed = v_shard.failed + v_log.failed + v_other.failed,
    superseded = v_shard.superseded + v_other.superseded,
    stale = v_shard.stale + v_other.stale,
    repeated = v_shard.repeated + v_other.repeated,
    past = v_shard.past + v_log.past + v_other.past,
    past_bytes = v_shard.past_bytes + v_log.past_bytes + v_other.past_bytes,
    counts_from = v_other.counts_from, counts_open = v_other.counts_open,
    inbox_from = v_mark.since, inbox_seq = v_mark.seq, inbox_open = v_mark.open,
    parked = v_shard.parked AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = p_shard AND j.parked)
  WHERE id = p_shard;
END {$};
