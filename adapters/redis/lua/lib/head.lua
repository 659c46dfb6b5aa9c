-- Defines: first_due.

-- first_due returns PerformAt of the next job of a shard that can be claimed, or -1. alone
-- is how many claims run alone.
local function first_due(paused, alone, JOBS, READY, CLAIMS)
  if paused or alone > 0 then return -1 end
  local ALONE = 64 -- the highest flag of a packed job, see lib/packed.lua
  local first = redis.call('ZRANGE', READY, 0, 0, 'WITHSCORES')
  if not first[1] or redis.call('HLEN', CLAIMS) > 0 and string.byte(redis.call('HGET', JOBS, first[1])) >= ALONE then return -1 end
  return tonumber(first[2])
end
