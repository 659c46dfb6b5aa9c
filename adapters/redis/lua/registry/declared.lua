#!lua flags=allow-oom
-- Notes in the record of a queue that all its shards were declared, unless the record has changed
-- since. From then on, a shard without a record has lost it and is not declared anew.
-- KEYS: queues
-- ARGV: 1 name, 2 the queue's record
-- Returns {'ok'}

local QUEUES = KEYS[1]
local name, record = ARGV[1], ARGV[2]
if redis.call('HGET', QUEUES, name) == record then redis.call('HSET', QUEUES, name, record .. ' +') end
return {'ok'}
