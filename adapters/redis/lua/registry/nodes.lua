#!lua flags=no-writes
-- Lists the nodes.
-- KEYS: nodes, status
-- ARGV: 1 now or ''
-- Returns {now, {owner, "started expires ttl asked node", ...}, {owner, status, ...}}
-- Uses: clock.

local NODES, STATUS, now = KEYS[1], KEYS[2], clock(ARGV[1])
return {now, redis.call('HGETALL', NODES), redis.call('HGETALL', STATUS)}
