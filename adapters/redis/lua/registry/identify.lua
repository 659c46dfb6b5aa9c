#!lua flags=allow-oom
-- Replaces the id of the store (ports.Identity).
-- KEYS: queues
-- ARGV: 1 the id
-- Returns {'ok'}

local QUEUES, id = KEYS[1], ARGV[1]
redis.call('HSET', QUEUES, '/id', id)
return {'ok'}
