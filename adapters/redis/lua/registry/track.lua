#!lua
-- Adds an id to the tracked ids of a queue, or removes it.
-- KEYS: meta of the queue's first shard, tracked
-- ARGV: 1 now or '', 2 id, 3 whether to remove it (1 or 0), 4 how many there may be
-- Returns 1 if that has changed the list, 0 if not, -1 if the list is full; nil if there is no
--   such shard
-- Uses: clock.

local META, TRACKED = KEYS[1], KEYS[2]
local now, id, remove, most = clock(ARGV[1]), ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
if redis.call('EXISTS', META) == 0 then return false end
if remove then return redis.call('HDEL', TRACKED, id) end
if redis.call('HEXISTS', TRACKED, id) == 1 then return 0 end
if redis.call('HLEN', TRACKED) >= most then return -1 end
return redis.call('HSET', TRACKED, id, string.format('%.0f', now))
