#!lua flags=allow-oom
-- Makes the record of a queue unless it is there, and takes away the mark of one
-- that is being forgotten.
-- KEYS: queues
-- ARGV: 1 name, 2 shards, 3 index (1 or 0)
-- Returns the record "index paused shards generation version"

local name, shards, index = ARGV[1], ARGV[2], ARGV[3]
local there = redis.call('HGET', KEYS[1], name)
local record = there and string.match(there, '^%d %d %d+ %d+ %d+') or index .. ' 0 ' .. shards .. ' 1 0'
if record ~= there then redis.call('HSET', KEYS[1], name, record) end
return record
