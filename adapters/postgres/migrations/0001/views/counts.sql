-- The present counts of shards. Rows of the inbox are counted when they are merged.
CREATE VIEW {schema}.counts AS
SELECT s.id AS shard,
  s.fresh + coalesce(t.fresh, 0) + coalesce(a.fresh, 0) AS fresh,
  s.retrying + coalesce(t.retrying, 0) + coalesce(a.retrying, 0) AS retrying,
  s.claimed + coalesce(t.claimed, 0) + coalesce(a.claimed, 0) AS claimed,
  s.dead + coalesce(t.dead, 0) + coalesce(a.dead, 0) AS dead,
  s.processed + coalesce(t.processed, 0) + coalesce(a.processed, 0) AS processed,
  s.failed + coalesce(t.failed, 0) + coalesce(a.failed, 0) AS failed,
  s.superseded + coalesce(a.superseded, 0) AS superseded,
  s.stale + coalesce(a.stale, 0) AS stale,
  s.repeated + coalesce(a.repeated, 0) AS repeated,
  s.past + coalesce(t.past, 0) + coalesce(a.past, 0) AS past,
  s.past_bytes + coalesce(t.past_bytes, 0) + coalesce(a.past_bytes, 0) AS past_bytes
FROM {schema}.shards s
LEFT JOIN LATERAL (
  SELECT sum(fresh) AS fresh, sum(retrying) AS retrying, sum(claimed) AS claimed, sum(dead) AS dead,
    sum(processed) AS processed, sum(failed) AS failed,
    (array_agg(past ORDER BY number DESC) FILTER (WHERE past IS NOT NULL))[1] AS past,
    (array_agg(past_bytes ORDER BY number DESC) FILTER (WHERE past IS NOT NULL))[1] AS past_bytes
  FROM {schema}.turn_log t
  WHERE t.shard = s.id AND t.token = s.token AND t.number > s.last
) t ON true
LEFT JOIN LATERAL (
  SELECT sum(fresh) AS fresh, sum(retrying) AS retrying, sum(claimed) AS claimed, sum(dead) AS dead,
    sum(processed) AS processed, sum(failed) AS failed, sum(superseded) AS superseded, sum(stale) AS stale,
    sum(repeated) AS repeated, sum(past) AS past, sum(past_bytes) AS past_bytes
  FROM (
    SELECT * FROM {schema}.count_changes a WHERE a.shard = s.id AND a.tx >= {schema}.scan_from(s.counts_from)
    UNION ALL
    SELECT a.* FROM unnest(s.counts_open) o (tx), LATERAL (
      SELECT * FROM {schema}.count_changes a WHERE a.shard = s.id AND a.tx = o.tx AND a.tx < {schema}.scan_from(s.counts_from) OFFSET 0
    ) a
  ) a
) a ON true;
