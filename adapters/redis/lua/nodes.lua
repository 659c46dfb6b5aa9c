#!lua flags=no-writes
-- Lists the nodes.
-- KEYS: nodes
-- ARGV: 1 now or ''
-- Returns {now, {owner, "started expires node", ...}}

local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
return {now, redis.call('HGETALL', KEYS[1])}
