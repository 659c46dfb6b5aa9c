#!lua flags=allow-oom
-- Stores the record of a queue unless there is one, and ends a Forget that is under
-- way.
-- KEYS: queues
-- ARGV: 1 name, 2 shards, 3 index (1 or 0)
-- Returns the record "index paused shards generation version"

local QUEUES = KEYS[1]
local name, shards, index = ARGV[1], ARGV[2], ARGV[3]
local there = redis.call('HGET', QUEUES, name)
local record = there and string.match(there, '^%d %d %d+ %d+ %d+') or index .. ' 0 ' .. shards .. ' 1 0'
if record ~= there then redis.call('HSET', QUEUES, name, record) end
return record
