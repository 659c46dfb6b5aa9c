#!lua flags=allow-oom
-- Stores a node, and removes those that ended long ago.
-- KEYS: nodes
-- ARGV: 1 now or '', 2 owner, 3 ttl in µs, 4 what the node says of itself
-- Returns {now, {owner, "started expires node", ...}}
-- Uses: MAX_INSTANT, clock.

local NODES = KEYS[1]
local owner, ttl, node = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local HOUR = 3600000000 -- for a clock that steps back
local now = clock(ARGV[1])
local known, started, gone = redis.call('HGETALL', NODES), now, {}
for i = 1, #known, 2 do
  local since, till = string.match(known[i + 1], '^(%d+) (%d+) ')
  if known[i] == owner and tonumber(till) > now then started = tonumber(since) end
  if known[i] ~= owner and tonumber(till) + HOUR < now then gone[#gone + 1] = known[i] end
end
local expires = math.min(now + ttl, MAX_INSTANT)
redis.call('HSET', NODES, owner, string.format('%.0f %.0f ', started, expires) .. node)
for _, id in ipairs(gone) do redis.call('HDEL', NODES, id) end
return {now, redis.call('HGETALL', NODES)}
