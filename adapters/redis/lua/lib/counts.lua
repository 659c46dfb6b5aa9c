-- Defines: counts.

-- counts returns the counts of a shard: queued, retries, claimed, dead, processed, failed,
-- PerformAt of the oldest or -1, set aside, superseded, and held.
local function counts(ready, parked, claims, rtime, rid, dead, lease, aside)
  local oldest, sizes = -1, {redis.call('ZCARD', ready), redis.call('ZCARD', parked)}
  for i, key in ipairs({ready, parked}) do
    local head = sizes[i] > 0 and redis.call('ZRANGE', key, 0, 0, 'WITHSCORES') or {}
    if head[1] and (oldest < 0 or tonumber(head[2]) < oldest) then oldest = tonumber(head[2]) end
  end
  local l = redis.call('HMGET', lease, 'processed', 'failed', 'superseded')
  return {sizes[1] + sizes[2], redis.call('ZCARD', rid), redis.call('HLEN', claims),
    redis.call('HLEN', dead), tonumber(l[1] or 0), tonumber(l[2] or 0), oldest, redis.call('HLEN', aside), tonumber(l[3] or 0),
    redis.call('ZCOUNT', rtime, '9007199254740992', '+inf')}
end
