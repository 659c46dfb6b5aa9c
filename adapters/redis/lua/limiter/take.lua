#!lua flags=allow-oom
-- Takes grants of limiters of a queue, as core.Rate.Take defines, and removes limiters that are
-- gone.
-- KEYS: limiters, ends
-- ARGV: 1 now or '', 2 whether the queue is known to be declared, if it has no limiter (1 or 0),
--   then of each take its key, and interval, tolerance, want and ahead, times in µs
-- Returns {'ok', now, granted, first, stopped, ...} or {'unknown'}
-- Uses: MAX_INSTANT, clock, call, floor, LIMITER_KEPT, read_limiters, write_limiters, prune_limiters.

local LIMITERS, ENDS = KEYS[1], KEYS[2]
local now, declared = clock(ARGV[1]), ARGV[2] == '1'
if not declared and call('EXISTS', LIMITERS) == 0 then return {'unknown'} end

-- take_grants changes a limiter, and returns the number of grants and the first slot.
local function take_grants(l, interval, tolerance, want, ahead)
  if interval == 0 then
    local first = math.max(now, l.stopped)
    return first <= math.min(now + ahead, MAX_INSTANT) and want or 0, first
  end

  local base = math.max(now, math.min(l.next, l.last + tolerance + interval))
  if l.stopped > math.max(0, now - LIMITER_KEPT) then base = math.max(base, l.stopped + tolerance) end
  base = math.min(base, MAX_INSTANT)
  local first, granted = base - tolerance, 0

  local room = now - base + tolerance + ahead
  if room >= 0 then
    granted = math.min(want, floor(room / interval) + 1, floor((MAX_INSTANT - base) / interval))
  end
  if granted > 0 then
    l.next = base + granted * interval
    l.last = math.max(l.last, now, first + (granted - 1) * interval)
    l.changed, l.moved = now, true
  end
  return granted, first
end

local keys = {}
for i = 3, #ARGV, 5 do keys[#keys + 1] = ARGV[i] end
local states, reply = read_limiters(LIMITERS, ENDS, keys, now), {'ok', now}

for i, l in ipairs(states) do
  local at = 5 * i - 2
  local granted, first = take_grants(l, tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]),
    tonumber(ARGV[at + 4]))
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = granted, first, l.stopped > now and l.stopped or 0
end

write_limiters(LIMITERS, ENDS, keys, states)
prune_limiters(LIMITERS, ENDS, #keys, now)
return reply
