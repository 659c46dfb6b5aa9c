#!lua flags=allow-oom
-- Uses slots of limiters of a queue and takes grants, as core.Rate.Use and core.Rate.Take define, and
-- removes limiters that are gone.
-- KEYS: limiters, ends
-- ARGV: 1 now or '', 2 whether the queue is known to be declared, if it has no limiter (1 or 0),
--   then of each take its key, and interval, tolerance, use, hold, want, ahead and soon, times in µs
-- Returns {'ok', now, used, start, granted, first, stopped, ...} or {'unknown'}
-- Uses: MAX_INSTANT, clock, call, floor, LIMITER_KEPT, read_limiters, write_limiters, prune_limiters.

local LIMITERS, ENDS = KEYS[1], KEYS[2]
local now, declared = clock(ARGV[1]), ARGV[2] == '1'
if not declared and call('EXISTS', LIMITERS) == 0 then return {'unknown'} end

-- A take t has an interval and a tolerance; l is the state of its limiter.

-- base_of returns the tolerance after the next slot of a limiter whose next, or started, is at, if that
-- is ahead of now.
local function base_of(t, l, at)
  local base = math.min(at, l.last + t.tolerance + t.interval)
  if l.stopped > math.max(0, now - LIMITER_KEPT) then base = math.max(base, l.stopped + t.tolerance) end
  return math.min(base, MAX_INSTANT)
end

-- within returns how many of the wanted slots lie up to a time after the first, which stands at base.
local function within(t, base, after, want)
  if after < 0 then return 0 end
  return math.min(want, floor(after / t.interval) + 1, floor((MAX_INSTANT - base) / t.interval))
end

-- take_slots is core.Rate.Take of slots whose even pace may begin up to late before now. It changes the
-- limiter, and returns the number of grants and the first slot.
local function take_slots(t, l, want, ahead, soon, late)
  if t.interval == 0 then
    local first = math.max(now, l.stopped)
    return first <= math.min(now + ahead, MAX_INSTANT) and want or 0, first
  end

  local base = math.max(now - late, base_of(t, l, l.next), base_of(t, l, l.started))
  local first = base - t.tolerance
  local granted = within(t, base, now - first + ahead, want)
  if granted == 0 then return 0, first end

  local used = within(t, base, now - first + soon, granted)
  if used > 0 then l.started = base + used * t.interval end
  l.next = base + granted * t.interval
  l.last = math.max(l.last, now, first + (granted - 1) * t.interval)
  l.changed, l.moved = now, true
  return granted, first
end

-- use_slots is core.Rate.Use, and works likewise.
local function use_slots(t, l, slots, hold)
  local next = l.next
  l.next = l.started
  local used, first = take_slots(t, l, slots, hold, 0, math.max(0, t.interval - 1))
  if used > 0 and t.interval > 0 then l.started = l.next end
  l.next = next
  return used, used > 0 and first or 0
end

local keys = {}
for i = 3, #ARGV, 8 do keys[#keys + 1] = ARGV[i] end
local states, reply = read_limiters(LIMITERS, ENDS, keys, now), {'ok', now}

for i, l in ipairs(states) do
  local at = 8 * i - 5
  local t, use, hold = {interval = tonumber(ARGV[at + 1]), tolerance = tonumber(ARGV[at + 2])},
    tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local used, start = use_slots(t, l, use, hold)
  local granted, first = take_slots(t, l, tonumber(ARGV[at + 5]) + use - used, tonumber(ARGV[at + 6]),
    tonumber(ARGV[at + 7]), 0)
  for _, v in ipairs({used, start, granted, first, l.stopped > now and l.stopped or 0}) do reply[#reply + 1] = v end
end

write_limiters(LIMITERS, ENDS, keys, states)
prune_limiters(LIMITERS, ENDS, #keys, now)
return reply
