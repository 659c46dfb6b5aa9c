-- Uses: byte, parse, band, WIDE, MANY, FIRST.
-- Defines: oldest.

-- oldest returns the time from which the longest-waiting job of two lists by time waits
-- (core.State.WaitsFrom); nil if there is none. Jobs behind the first hundred of a list count from
-- their PerformAt, and so do those whose records are large or can't be read.
local function oldest(jobs, ready, parked)
  local MOST, LARGE, best = 100, 65536, nil -- storekit.OldestJobs
  for _, key in ipairs({ready, parked}) do
    for i = 0, MOST do
      local row = redis.call('ZRANGE', key, i, i, 'WITHSCORES')
      local at = tonumber(row[2])
      if not at or best and at >= best then break end

      local record = i < MOST and redis.call('HSTRLEN', jobs, row[1]) <= LARGE and redis.call('HGET', jobs, row[1]) or ''
      local flags = byte(record) or 0
      local kind = flags % 4
      local first = kind >= MANY and 2 or kind == WIDE and 10 or 9
      if band(flags, FIRST) > 0 and #record >= first + 7 then at = math.max(at, (parse('>I8', record, first))) end
      best = math.min(best or at, at)
    end
  end
  return best
end
