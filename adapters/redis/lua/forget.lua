#!lua flags=allow-oom
-- Removes the record of a queue if it is as it was.
-- KEYS: queues
-- ARGV: 1 name, 2 record
-- Returns 1, or 0

local name, record = ARGV[1], ARGV[2]
if redis.call('HGET', KEYS[1], name) ~= record then return 0 end
return redis.call('HDEL', KEYS[1], name)
