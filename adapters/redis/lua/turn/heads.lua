#!lua flags=no-writes
-- Returns when the shard's next job can be claimed.
-- KEYS: meta jobs ready claims lease
-- ARGV: 1 now or ''
-- Returns {'ok', now, due or -1} or {'unknown'}
-- Uses: clock, first_due.

local META, JOBS, READY, CLAIMS, LEASE = unpack(KEYS)
local now = clock(ARGV[1])
local record = redis.call('GET', META) -- lib/shard.lua has its format
if not record then return {'unknown'} end
local alone = tonumber(redis.call('HGET', LEASE, 'alone') or 0)
return {'ok', now, first_due(string.sub(record, 3, 3) == '1', alone, JOBS, READY, CLAIMS)}
