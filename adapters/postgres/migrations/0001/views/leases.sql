-- The present leases and floors of shards: from the newest row of turn_log, or else from the
-- shard's row.
CREATE VIEW {schema}.leases AS
SELECT s.id AS shard, s.held, s.owner, s.attempt, s.token,
  coalesce(t.number, s.last) AS last,
  coalesce(t.ttl, s.ttl) AS ttl,
  coalesce(t.expires, s.expires) AS expires,
  coalesce(t.floor, s.floor) AS floor,
  coalesce(t.rescan, s.rescan) AS rescan
FROM {schema}.shards s
LEFT JOIN LATERAL (
  SELECT * FROM {schema}.turn_log t
  WHERE t.shard = s.id AND t.token = s.token AND t.number > s.last
  ORDER BY t.number DESC LIMIT 1
) t ON true;
