-- What a shard's row says together with what is not folded into it yet.

-- From which transaction on to look for what is not merged or tallied yet. In a database
-- that was restored elsewhere, transactions may count from the beginning again.
CREATE FUNCTION {schema}.since(p_tx xid8) RETURNS xid8 LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN p_tx <= pg_snapshot_xmax(pg_current_snapshot()) THEN p_tx ELSE '0'::xid8 END
{$};

-- The lease as it is now, and the floor.
CREATE VIEW {schema}.leases AS
SELECT s.id AS shard, s.held, s.owner, s.attempt, s.token,
  coalesce(t.number, s.last) AS last,
  coalesce(t.ttl, s.ttl) AS ttl,
  coalesce(t.expires, s.expires) AS expires,
  coalesce(t.floor, s.floor) AS floor,
  coalesce(t.rescan, s.rescan) AS rescan
FROM {schema}.shards s
LEFT JOIN LATERAL (
  SELECT * FROM {schema}.turns t
  WHERE t.shard = s.id AND t.token = s.token AND t.number > s.last
  ORDER BY t.number DESC LIMIT 1
) t ON true;

-- The counts as they are now. What waits in the inbox is counted when it is merged.
CREATE VIEW {schema}.counts AS
SELECT s.id AS shard,
  s.fresh + coalesce(t.fresh, 0) + coalesce(a.fresh, 0) AS fresh,
  s.retries + coalesce(t.retries, 0) + coalesce(a.retries, 0) AS retries,
  s.claimed + coalesce(t.claimed, 0) + coalesce(a.claimed, 0) AS claimed,
  s.dead + coalesce(t.dead, 0) + coalesce(a.dead, 0) AS dead,
  s.processed + coalesce(t.processed, 0) + coalesce(a.processed, 0) AS processed,
  s.failed + coalesce(t.failed, 0) + coalesce(a.failed, 0) AS failed
FROM {schema}.shards s
LEFT JOIN LATERAL (
  SELECT sum(fresh) AS fresh, sum(retries) AS retries, sum(claimed) AS claimed, sum(dead) AS dead,
    sum(processed) AS processed, sum(failed) AS failed
  FROM {schema}.turns t
  WHERE t.shard = s.id AND t.token = s.token AND t.number > s.last
) t ON true
LEFT JOIN LATERAL (
  SELECT sum(fresh) AS fresh, sum(retries) AS retries, sum(claimed) AS claimed, sum(dead) AS dead,
    sum(processed) AS processed, sum(failed) AS failed
  FROM {schema}.tallies a
  WHERE a.shard = s.id AND a.tx >= {schema}.since(s.tallied)
) a ON true;
