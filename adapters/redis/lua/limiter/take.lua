#!lua flags=allow-oom
-- Uses slots of limiters of a queue and takes grants, as core.Rate.Use and core.Rate.Take define, and
-- removes limiters that are gone.
-- KEYS: limiters, ends
-- ARGV: 1 now or '', 2 whether the queue is known to be declared, if it has no limiter (1 or 0),
--   then of each take its key, and interval, tolerance, use, want and ahead, times in µs
-- Returns {'ok', now, used, granted, first, stopped, ...} or {'unknown'}
-- Uses: MAX_INSTANT, clock, call, floor, LIMITER_KEPT, read_limiters, write_limiters, prune_limiters.

local LIMITERS, ENDS = KEYS[1], KEYS[2]
local now, declared = clock(ARGV[1]), ARGV[2] == '1'
if not declared and call('EXISTS', LIMITERS) == 0 then return {'unknown'} end

local MIN_SLACK = 250000 -- core.MinSlack

-- A take t has the fields interval, tolerance, use, want and ahead; l is the state of its limiter.

-- earliest returns the earliest time of the next slot at an even pace.
local function earliest(t, l)
  if l.stopped > math.max(0, now - LIMITER_KEPT) then return math.max(now, l.stopped + t.tolerance) end
  return now
end

-- after returns l.next or l.started, but a time soon after the last slot if it lies further ahead.
local function after(t, l, at) return math.min(at, l.last + t.tolerance + t.interval) end

-- use_base returns the time of the next use at an even pace.
local function use_base(t, l)
  return math.max(earliest(t, l) - math.max(t.interval, MIN_SLACK), after(t, l, l.started))
end

-- within returns how many of the wanted slots lie within a time, if the first is at base at an even pace.
local function within(t, time, base, want)
  if time < 0 then return 0 end
  return math.max(0, math.min(want, floor(time / t.interval) + 1, floor((MAX_INSTANT - base) / t.interval)))
end

-- note_uses notes that slots are used now.
local function note_uses(t, l, slots)
  if slots == 0 then return end
  l.started = use_base(t, l) + slots * t.interval
  l.last, l.changed, l.moved = math.max(l.last, now), now, true
end

-- take_slots changes a limiter, and returns the number of uses, that of grants, and the first slot.
local function take_slots(t, l)
  if t.interval == 0 then
    local used, first = l.stopped > now and 0 or t.use, math.max(now, l.stopped)
    return used, first <= math.min(now + t.ahead, MAX_INSTANT) and t.want + t.use - used or 0, first
  end

  local used = 0
  if l.stopped <= now then
    local base = use_base(t, l)
    used = within(t, now - base + t.tolerance, base, t.use)
    note_uses(t, l, used)
  end

  local base = math.max(earliest(t, l), after(t, l, l.next), after(t, l, l.started))
  local first = math.min(base, MAX_INSTANT) - t.tolerance
  local granted = within(t, now - first + t.ahead, base, t.want + t.use - used)
  if granted > 0 then
    note_uses(t, l, within(t, now - first, base, granted))
    l.next = base + granted * t.interval
    l.last = math.max(l.last, now, first + (granted - 1) * t.interval)
    l.changed, l.moved = now, true
  end
  return used, granted, first
end

local keys, takes = {}, {}
for i = 3, #ARGV, 6 do
  local n = #keys + 1
  keys[n] = ARGV[i]
  takes[n] = {interval = tonumber(ARGV[i + 1]), tolerance = tonumber(ARGV[i + 2]), use = tonumber(ARGV[i + 3])}
  takes[n].want, takes[n].ahead = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
end
local states, reply = read_limiters(LIMITERS, ENDS, keys, now), {'ok', now}

for i, l in ipairs(states) do
  local used, granted, first = take_slots(takes[i], l)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = used, granted, first
  reply[n + 4] = l.stopped > now and l.stopped or 0
end

write_limiters(LIMITERS, ENDS, keys, states)
prune_limiters(LIMITERS, ENDS, #keys, now)
return reply
