#!lua flags=no-writes
-- Lists some of a shard's claims.
-- KEYS: claims cancels lease
-- ARGV: 1 now or '', 2 cursor of HSCAN
-- Returns {cursor, claims, cancels, token}, both lists as id, value, ...; token is
--   that of the current lease, or 0
-- Uses: clock, current_token.

local CLAIMS, CANCELS, LEASE = unpack(KEYS)
local now, cursor = clock(ARGV[1]), ARGV[2]
local some = redis.call('HSCAN', CLAIMS, cursor, 'COUNT', 200)
return {some[1], some[2], redis.call('HGETALL', CANCELS), current_token(LEASE, now)}
