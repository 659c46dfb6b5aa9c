#!lua flags=no-writes
-- Counts what a shard holds.
-- KEYS: meta ready parked claims rid dead lease
-- ARGV: 1 now or ''
-- Returns {'ok', now, queued, retries, claimed, dead, processed, failed, oldest
--   or -1, owner, token, expires} or {'unknown'}

local META, READY, PARKED, CLAIMS, RID, DEAD, LEASE = unpack(KEYS)
local now = clock(ARGV[1])
if redis.call('EXISTS', META) == 0 then return {'unknown'} end
local oldest = -1
for _, key in ipairs({READY, PARKED}) do
  local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if head[1] and (oldest < 0 or tonumber(head[2]) < oldest) then oldest = tonumber(head[2]) end
end
local lease = redis.call('HMGET', LEASE, 'owner', 'token', 'expires', 'held', 'processed', 'failed')
local held = lease[4] == '1'
return {'ok', now, redis.call('ZCARD', READY) + redis.call('ZCARD', PARKED), redis.call('ZCARD', RID),
  redis.call('HLEN', CLAIMS), redis.call('HLEN', DEAD), tonumber(lease[5] or 0), tonumber(lease[6] or 0), oldest,
  held and lease[1] or '', held and tonumber(lease[2]) or 0, held and tonumber(lease[3]) or 0}
