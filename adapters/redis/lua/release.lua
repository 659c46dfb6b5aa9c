#!lua flags=allow-oom
-- Ends the lease, and wakes who waits for the shard. Owner, attempt and token stay
-- known.
-- KEYS: lease
-- ARGV: 1 owner, 2 token, 3 channel
-- Returns {'ok'} or {'lost'}

local owner, token, channel = ARGV[1], ARGV[2], ARGV[3]
local l = redis.call('HMGET', KEYS[1], 'owner', 'token', 'held')
if l[1] ~= owner or l[2] ~= token or l[3] ~= '1' then return {'lost'} end
redis.call('HSET', KEYS[1], 'held', 0)
redis.pcall('SPUBLISH', channel, '')
return {'ok'}
