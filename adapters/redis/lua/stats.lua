#!lua flags=no-writes
-- Counts what a shard of a Cluster holds, and reads its lease, by the commands that one server gets as a transaction: see statsOf.
-- KEYS: meta ready parked rid claims dead aside ready parked lease
-- ARGV: 1 now or ''
-- Returns now, and what each command replies
-- Uses: clock.

local call = redis.call
return {clock(ARGV[1]), call('EXISTS', KEYS[1]),
  call('ZCARD', KEYS[2]), call('ZCARD', KEYS[3]), call('ZCARD', KEYS[4]),
  call('HLEN', KEYS[5]), call('HLEN', KEYS[6]), call('HLEN', KEYS[7]),
  call('ZRANGE', KEYS[8], 0, 0, 'WITHSCORES'), call('ZRANGE', KEYS[9], 0, 0, 'WITHSCORES'),
  call('HMGET', KEYS[10], 'processed', 'failed', 'held', 'owner', 'token', 'expires')}
