#!lua flags=allow-oom
-- Stores an operator's action (ports.Auditor), and removes the oldest if there are more than
-- 1,000.
-- KEYS: actions by id, their times
-- ARGV: 1 now or '', 2 id, 3 the action
-- Returns how many are kept
-- Uses: clock.

local ACTIONS, TIMES = KEYS[1], KEYS[2]
local now, id, action = clock(ARGV[1]), ARGV[2], ARGV[3]
local KEPT = 1000 -- ports.ActionsKept

if not redis.call('ZSCORE', TIMES, id) then
  local newest = redis.call('ZRANGE', TIMES, -1, -1, 'WITHSCORES')
  if newest[2] then now = math.max(now, newest[2] + 1) end
  redis.call('ZADD', TIMES, string.format('%.0f', now), id)
end

redis.call('HSET', ACTIONS, id, action)
local old = redis.call('ZRANGE', TIMES, 0, -KEPT - 1)
for _, gone in ipairs(old) do redis.call('HDEL', ACTIONS, gone) end
if #old > 0 then redis.call('ZREMRANGEBYRANK', TIMES, 0, #old - 1) end
return redis.call('ZCARD', TIMES)
