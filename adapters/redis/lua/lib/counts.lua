-- Uses: oldest.
-- Defines: counts.

-- counts returns the counts of a shard: queued, retries, claimed, dead, processed, failed, since
-- when the oldest job waits or -1, set aside, superseded, held, stale, and repeated.
local function counts(jobs, ready, parked, claims, rtime, rid, dead, lease, aside)
  local sizes = {redis.call('ZCARD', ready), redis.call('ZCARD', parked)}
  local l = redis.call('HMGET', lease, 'processed', 'failed', 'superseded', 'stale', 'repeated')
  return {sizes[1] + sizes[2], redis.call('ZCARD', rid), redis.call('HLEN', claims),
    redis.call('HLEN', dead), tonumber(l[1] or 0), tonumber(l[2] or 0), oldest(jobs, ready, parked) or -1, redis.call('HLEN', aside), tonumber(l[3] or 0),
    redis.call('ZCOUNT', rtime, '9007199254740992', '+inf'), tonumber(l[4] or 0), tonumber(l[5] or 0)}
end
