#!lua flags=allow-oom
-- Makes the record of a shard unless it is there: the second half of Declare.
-- KEYS: meta
-- ARGV: 1 the queue's record
-- Returns {'ok'}

redis.call('SET', KEYS[1], ARGV[1], 'NX')
return {'ok'}
