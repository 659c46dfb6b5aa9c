#!lua flags=allow-oom
-- Ends the lease, and wakes nodes that wait for the shard. Owner, attempt and token stay stored.
-- KEYS: lease
-- ARGV: 1 owner, 2 token, 3 channel
-- Returns {'ok'} or {'lost'}

local LEASE = KEYS[1]
local owner, token, channel = ARGV[1], ARGV[2], ARGV[3]
local lease = redis.call('HMGET', LEASE, 'owner', 'token', 'held')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
redis.call('HSET', LEASE, 'held', 0)
redis.pcall('SPUBLISH', channel, '')
return {'ok'}
