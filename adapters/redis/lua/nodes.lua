#!lua flags=no-writes
-- Lists the nodes.
-- KEYS: nodes
-- ARGV: 1 now or ''
-- Returns {now, {owner, "started expires node", ...}}

local now = clock(ARGV[1])
return {now, redis.call('HGETALL', KEYS[1])}
