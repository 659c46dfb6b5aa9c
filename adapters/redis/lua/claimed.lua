#!lua flags=no-writes
-- Goes through some of a shard's claims.
-- KEYS: claims cancels
-- ARGV: 1 cursor of HSCAN
-- Returns {cursor, claims, cancels}, both lists as id, value, ...

local some = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 200)
return {some[1], some[2], redis.call('HGETALL', KEYS[2])}
