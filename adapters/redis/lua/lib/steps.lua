-- Which jobs a step of an operator handles.
-- Uses: RTIME, call.
-- Defines: step_ids, failed_ids.

-- step_ids returns the ids that a step is given, from ARGV[at] on, or else those that
-- find(n) returns, at most ARGV[2], and whether there are more of them (1 or 0).
local function step_ids(at, find)
  if ARGV[3] == '1' then return {unpack(ARGV, at)}, 0 end
  local most = tonumber(ARGV[2])
  local ids, more = find(most + 1), 0
  if #ids > most then ids[#ids], more = nil, 1 end
  return ids, more
end

-- failed_ids returns the first n ids with a failure, by (PerformAt, id).
local function failed_ids(n) return call('ZRANGE', RTIME, 0, n - 1) end
