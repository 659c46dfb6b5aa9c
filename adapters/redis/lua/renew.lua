#!lua flags=allow-oom
-- Makes the lease last for its TTL from now.
-- KEYS: lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 ttl in µs
-- Returns {'ok', now, remaining} or {'lost'}

local owner, token, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = clock(ARGV[1])
local l = redis.call('HMGET', KEYS[1], 'owner', 'token', 'held')
if l[1] ~= owner or l[2] ~= token or l[3] ~= '1' then return {'lost'} end
local expires = math.min(now + ttl, 9007199254740992)
redis.call('HSET', KEYS[1], 'ttl', ttl, 'expires', expires)
return {'ok', now, expires - now}
