#!lua flags=allow-oom
-- Stops a limiter of a queue, as core.Limiter.Stop defines, and removes limiters that are gone.
-- KEYS: limiters, ends
-- ARGV: 1 now or '', 2 whether the queue is known to be declared, if it has no limiter (1 or 0),
--   3 key, 4 how long in µs
-- Returns {'ok'} or {'unknown'}
-- Uses: MAX_INSTANT, clock, call, read_limiters, write_limiters, prune_limiters.

local LIMITERS, ENDS = KEYS[1], KEYS[2]
local now, declared, keys, length = clock(ARGV[1]), ARGV[2] == '1', {ARGV[3]}, tonumber(ARGV[4])
if not declared and call('EXISTS', LIMITERS) == 0 then return {'unknown'} end

local states = read_limiters(LIMITERS, ENDS, keys, now)
local l = states[1]
local till = math.max(l.stopped, math.min(now + length, MAX_INSTANT))
if length == 0 then till = math.min(l.stopped, now) end
if till ~= l.stopped then l.stopped, l.changed, l.moved = till, now, true end

write_limiters(LIMITERS, ENDS, keys, states)
prune_limiters(LIMITERS, ENDS, 1, now)
return {'ok'}
