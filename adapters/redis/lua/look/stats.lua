#!lua flags=no-writes
-- Counts the entries of a shard of a Cluster, and reads its lease, with the commands that a single
-- server gets as a transaction: see statsCalls.
-- KEYS: meta ready parked rid rtime claims dead aside ready parked lease
-- ARGV: 1 now or ''
-- Returns now, and the reply of each command
-- Uses: clock.

local call = redis.call
return {clock(ARGV[1]), call('EXISTS', KEYS[1]),
  call('ZCARD', KEYS[2]), call('ZCARD', KEYS[3]), call('ZCARD', KEYS[4]),
  call('ZCOUNT', KEYS[5], '9007199254740992', '+inf'),
  call('HLEN', KEYS[6]), call('HLEN', KEYS[7]), call('HLEN', KEYS[8]),
  call('ZRANGE', KEYS[9], 0, 0, 'WITHSCORES'), call('ZRANGE', KEYS[10], 0, 0, 'WITHSCORES'),
  call('HMGET', KEYS[11], 'processed', 'failed', 'superseded', 'stale', 'repeated', 'early', 'held', 'owner', 'token', 'expires')}
