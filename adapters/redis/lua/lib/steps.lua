-- Which jobs or dead letters a step of an operator handles.
-- Uses: RTIME, call, reader, bounds.
-- Defines: step_ids, failed_ids, read_step.

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

-- read_step returns what a hash has for the first of some ids, up to so many bytes or as
-- many as a step may read, and the rest of the ids it drops.
local function read_step(key, ids, most)
  local get, values, size = reader(key, ids), {}, 0
  for i = 1, #ids do
    local value = get(i)
    size = size + (value and #value or 0)
    if value and size > (most or bounds.most_bytes) and size > #value then
      for k = #ids, i, -1 do ids[k] = nil end
      break
    end
    values[i] = value
  end
  return values
end
