-- How an operator's step reads records, and the condition on its jobs.
-- Uses: reader, bounds, queue.
-- Defines: condition, named, read_step.

-- condition returns a function that reports whether a step is about a job: its first push was
-- before an instant, '0' for any, and it has failed if kind is '1', or is held if kind is '2'.
local function condition(before, kind)
  before = tonumber(before)
  return function(job)
    return (before == 0 or job.first < before) and (kind ~= '1' or job.retry >= 0) and (kind ~= '2' or queue.is_held(job))
  end
end

-- named returns the ids in ARGV from a place on, and the Data that follows each of them if first is
-- set, else nil.
local function named(from, first)
  local ids, firsts = {}, first and {} or nil
  for i = from, #ARGV, first and 2 or 1 do
    ids[#ids + 1] = ARGV[i]
    if first then firsts[#ids] = ARGV[i + 1] end
  end
  return ids, firsts
end

-- read_step returns the values in a hash for the first of some ids, up to most bytes or as many as
-- a step may read. It drops the rest of the ids.
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
