#!lua flags=no-writes
-- Goes through some of a shard's claims.
-- KEYS: claims cancels lease
-- ARGV: 1 now or '', 2 cursor of HSCAN
-- Returns {cursor, claims, cancels, token}, both lists as id, value, ...; token is
--   that of the lease that lasts, or 0

local now, some = clock(ARGV[1]), redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', 200)
return {some[1], some[2], redis.call('HGETALL', KEYS[2]), lasting(KEYS[3], now)}
