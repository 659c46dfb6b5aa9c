#!lua flags=allow-oom
-- Makes the lease last for its TTL from now.
-- KEYS: lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 ttl in µs
-- Returns {'ok', now, remaining} or {'lost'}
-- Uses: MAX_INSTANT, clock.

local LEASE = KEYS[1]
local owner, token, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = clock(ARGV[1])
local lease = redis.call('HMGET', LEASE, 'owner', 'token', 'held')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local expires = math.min(now + ttl, MAX_INSTANT)
redis.call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
return {'ok', now, expires - now}
