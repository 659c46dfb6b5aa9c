#!lua flags=allow-oom
-- Pauses or resumes a queue in its record. The version orders these calls, so
-- that all shards come to agree with the last.
-- KEYS: queues
-- ARGV: 1 name, 2 paused (1 or 0)
-- Returns the record, or nil

local name, paused = ARGV[1], ARGV[2]
local record = redis.call('HGET', KEYS[1], name)
if not record then return false end
local index, layout, version, mark = string.match(record, '^(%d) %d (%d+ %d+) (%d+)(.*)$') -- of one that is being forgotten
record = index .. ' ' .. paused .. ' ' .. layout .. ' ' .. string.format('%.0f', version + 1)
redis.call('HSET', KEYS[1], name, record .. mark)
return record
