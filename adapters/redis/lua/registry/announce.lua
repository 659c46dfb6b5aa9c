#!lua flags=allow-oom
-- Stores a node, removes nodes that ended long ago or can't be read, and shortens those that last
-- longer than they may. It wakes other nodes if the node is new to them or its announcement has
-- changed.
-- KEYS: nodes, status
-- ARGV: 1 now or '', 2 owner, 3 ttl in µs, 4 the node's announcement, 5 its status, 6 channel
-- Returns {now, {owner, "started expires ttl asked node", ...}}, for running nodes
-- Uses: MAX_INSTANT, clock.

local NODES, STATUS = KEYS[1], KEYS[2]
local owner, ttl, node, status, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local HOUR = 3600000000 -- ports.NodeKept
local now = clock(ARGV[1])

local known, gone, cut, running = redis.call('HGETALL', NODES), {}, {}, {}
local started, asked, changed = now, '0', true
for i = 1, #known, 2 do
  local id, value = known[i], known[i + 1]
  local since, till, length, flag, said = string.match(value, '^(%d+) (%d+) (%d+) (%d) (.*)$')
  local alive = till and tonumber(till) > now
  if id == owner then
    if alive then started, asked, changed = tonumber(since), flag, said ~= node end
  elseif alive then
    if tonumber(till) > now + length then -- the clock stepped back
      value = string.format('%s %.0f %s %s %s', since, now + length, length, flag, said)
      cut[#cut + 1] = {id, value}
    end
    running[#running + 1] = id
    running[#running + 1] = value
  elseif not till or tonumber(till) + HOUR < now then
    gone[#gone + 1] = id
  end
end

local expires = math.min(now + ttl, MAX_INSTANT)
local value = string.format('%.0f %.0f %.0f %s ', started, expires, ttl, asked) .. node
running[#running + 1] = owner
running[#running + 1] = value

redis.call('HSET', NODES, owner, value)
for _, other in ipairs(cut) do redis.call('HSET', NODES, other[1], other[2]) end
redis.call('HSET', STATUS, owner, status)
for _, id in ipairs(gone) do
  redis.call('HDEL', NODES, id)
  redis.call('HDEL', STATUS, id)
end

if changed then redis.pcall('SPUBLISH', channel, '') end
return {now, running}
