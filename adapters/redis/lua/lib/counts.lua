-- Defines: counts.

-- counts returns what a shard holds and has done: queued, retries, claimed, dead,
-- processed, failed, and PerformAt of the oldest or -1.
local function counts(ready, parked, claims, rid, dead, lease)
  local oldest = -1
  for _, key in ipairs({ready, parked}) do
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[1] and (oldest < 0 or tonumber(head[2]) < oldest) then oldest = tonumber(head[2]) end
  end
  local done = redis.call('HMGET', lease, 'processed', 'failed')
  return {redis.call('ZCARD', ready) + redis.call('ZCARD', parked), redis.call('ZCARD', rid), redis.call('HLEN', claims),
    redis.call('HLEN', dead), tonumber(done[1] or 0), tonumber(done[2] or 0), oldest}
end
