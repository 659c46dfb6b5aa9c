#!lua flags=no-writes
-- Lists the tracked ids of a queue.
-- KEYS: meta of the queue's first shard, tracked
-- ARGV: none
-- Returns ids and since when they are tracked in turn; nil if there is no such shard

local META, TRACKED = KEYS[1], KEYS[2]
if redis.call('EXISTS', META) == 0 then return false end
return redis.call('HGETALL', TRACKED)
