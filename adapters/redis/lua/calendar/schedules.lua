#!lua flags=no-writes
-- Reads schedules of a shard.
-- KEYS: meta schedules
-- ARGV: 1 now or '', 2... their fields, as in lib/schedules.lua
-- Returns {'ok', now, record or nil of each} or {'unknown'}
-- Uses: clock.

local META, SCHEDULES = KEYS[1], KEYS[2]
local now = clock(ARGV[1])
if redis.call('EXISTS', META) == 0 then return {'unknown'} end
local reply = {'ok', now}
for i = 2, #ARGV do reply[i + 1] = redis.call('HGET', SCHEDULES, ARGV[i]) end
return reply
