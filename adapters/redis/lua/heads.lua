#!lua flags=no-writes
-- Returns when the shard's next job can be claimed.
-- KEYS: meta jobs ready claims lease
-- ARGV: 1 now or ''
-- Returns {'ok', now, due or -1} or {'unknown'}
-- Uses: clock.

local META, JOBS, READY, CLAIMS, LEASE = unpack(KEYS)
local ALONE = 64 -- a flag of a packed job, see lib/packed.lua
local now = clock(ARGV[1])
local record = redis.call('GET', META) -- "index paused ..."
if not record then return {'unknown'} end
local head = redis.call('ZRANGE', READY, 0, 0, 'WITHSCORES')
if not head[1] or string.sub(record, 3, 3) == '1' or tonumber(redis.call('HGET', LEASE, 'alone') or 0) > 0 then return {'ok', now, -1} end
if redis.call('HLEN', CLAIMS) > 0 then
  local packed_job = redis.call('HGET', JOBS, head[1])
  if bit.band(string.byte(packed_job), ALONE) > 0 then return {'ok', now, -1} end
end
return {'ok', now, tonumber(head[2])}
