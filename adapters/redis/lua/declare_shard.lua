#!lua flags=allow-oom
-- Stores the record of a shard unless there is one: the second half of Declare.
-- KEYS: meta
-- ARGV: 1 the queue's record
-- Returns {'ok'}

local META, record = KEYS[1], ARGV[1]
redis.call('SET', META, record, 'NX')
return {'ok'}
