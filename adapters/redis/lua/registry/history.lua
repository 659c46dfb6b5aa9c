#!lua flags=no-writes
-- Lists the counts of a queue in one hour: see record.lua.
-- KEYS: history of the hour
-- ARGV: 1 now or '', 2 from, 3 to or 0
-- Returns {now, hour, field, value, ...}; {now} if no minute of the hour is requested
-- Uses: clock.

local HISTORY = KEYS[1]
local HOUR, MINUTE, BLOCK = 3600000000, 60000000, 600000000
local now, from, to = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

from = math.max(from, now - now % MINUTE - 24 * HOUR) -- ports.HistoryKept
if to == 0 then to = math.huge end

local hour = tonumber(redis.call('HGET', HISTORY, 'hour') or '')
if not hour or (hour + 1) * HOUR <= from or hour * HOUR >= to then return {now} end

local reply, all = {now, hour}, redis.call('HGETALL', HISTORY)
for i = 1, #all, 2 do
  local block = tonumber(string.sub(all[i], 1, 1)) -- none for the field hour
  local start = block and hour * HOUR + block * BLOCK
  if block and start + BLOCK > from and start < to then
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = all[i + 1]
  end
end
return reply
