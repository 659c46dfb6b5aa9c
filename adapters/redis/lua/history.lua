#!lua flags=no-writes
-- Lists the minutes of a shard, of which there are 24 hours at the most.
-- KEYS: history
-- ARGV: 1 from, 2 to or 0
-- Returns {minute, statistics, ...}

local HISTORY = KEYS[1]
local from, to = tonumber(ARGV[1]), tonumber(ARGV[2])
local minutes, all = {}, redis.call('HGETALL', HISTORY)
for i = 1, #all, 2 do
  local at = tonumber(all[i])
  if at >= from and (to == 0 or at < to) then
    minutes[#minutes + 1] = all[i]
    minutes[#minutes + 1] = all[i + 1]
  end
end
return minutes
