#!lua flags=allow-oom
-- Makes the record of a queue unless it is there.
-- KEYS: queues
-- ARGV: 1 name, 2 shards, 3 index (1 or 0)
-- Returns the record "index paused shards generation version"

local name, shards, index = ARGV[1], ARGV[2], ARGV[3]
local record = redis.call('HGET', KEYS[1], name)
if record then return record end
record = index .. ' 0 ' .. shards .. ' 1 0'
redis.call('HSET', KEYS[1], name, record)
return record
