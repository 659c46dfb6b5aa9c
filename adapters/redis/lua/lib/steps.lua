-- chosen is the ids that a step is given, from ARGV[at] on, or else those that
-- found gives of so many, and whether it leaves some (1 or 0).
local function chosen(at, found)
  if ARGV[3] == '1' then return {unpack(ARGV, at)}, 0 end
  local most = tonumber(ARGV[2])
  local ids, more = found(most + 1), 0
  if #ids > most then ids[#ids], more = nil, 1 end
  return ids, more
end

-- failed is the first ids with a failure, by (PerformAt, id).
local function failed(n) return call('ZRANGE', RTIME, 0, n - 1) end
