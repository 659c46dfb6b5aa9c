#!lua flags=no-writes
-- Lists the nodes.
-- KEYS: nodes
-- ARGV: 1 now or ''
-- Returns {now, {owner, "started expires node", ...}}
-- Uses: clock.

local NODES, now = KEYS[1], clock(ARGV[1])
return {now, redis.call('HGETALL', NODES)}
