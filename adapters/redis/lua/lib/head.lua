-- Defines: first_due.

-- first_due returns PerformAt of the next job of a shard that can be claimed, or -1. alone is the
-- number of claims that run alone.
local function first_due(paused, alone, JOBS, READY, CLAIMS)
  if paused or alone > 0 then return -1 end
  local ALONE, UNKNOWN = 64, 7 -- flags of a packed job, see lib/packed.lua; no job has all of UNKNOWN
  local first = redis.call('ZRANGE', READY, 0, 0, 'WITHSCORES')
  if not first[1] then return -1 end
  if redis.call('HLEN', CLAIMS) > 0 then
    local flags = string.byte(redis.call('HGET', JOBS, first[1]) or '') or 0
    if bit.band(flags, ALONE) > 0 and bit.band(flags, UNKNOWN) < UNKNOWN then return -1 end -- what can't be read is for the next turn to set aside
  end
  return tonumber(first[2])
end
