#!lua flags=no-writes
-- Lists the counts of a queue by day: see lib/days.lua.
-- KEYS: days
-- ARGV: 1 now or ''
-- Returns {now, day, value, ...}
-- Uses: clock.

local reply, all = {clock(ARGV[1])}, redis.call('HGETALL', KEYS[1])
for i = 1, #all do reply[i + 1] = all[i] end
return reply
