#!lua flags=allow-oom
-- Pauses or resumes a queue in its record. The version orders these calls, so that all shards end
-- with the state of the last one.
-- KEYS: queues
-- ARGV: 1 name, 2 paused (1 or 0)
-- Returns the record, or nil

local QUEUES = KEYS[1]
local name, paused = ARGV[1], ARGV[2]
local record = redis.call('HGET', QUEUES, name)
if not record then return false end
local index, layout, version, rule, nonce = string.match(record, '^(%d) %d (%d+ %d+) (%d+)([=%d-]*)(.*)$') -- see declared.lua and forget.lua
record = index .. ' ' .. paused .. ' ' .. layout .. ' ' .. string.format('%.0f', version + 1) .. rule
redis.call('HSET', QUEUES, name, record .. nonce)
return record
