#!lua flags=no-writes
-- Lists limiters of a queue whose end lies ahead, the furthest first.
-- KEYS: limiters, ends
-- ARGV: 1 now or '', 2 whether the queue is known to be declared, if it has no limiter (1 or 0),
--   3 how many at most
-- Returns {'ok', now, key, next, started, last, stopped, changed, ...} or {'unknown'}
-- Uses: clock, call, fetch.

local LIMITERS, ENDS = KEYS[1], KEYS[2]
local now, declared = clock(ARGV[1]), ARGV[2] == '1'
if not declared and call('EXISTS', LIMITERS) == 0 then return {'unknown'} end

local keys = call('ZRANGE', ENDS, '+inf', string.format('(%.0f', now), 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3])
local reply = {'ok', now}
for i, text in ipairs(fetch('HMGET', LIMITERS, keys)) do
  local next, started, last, stopped, changed = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if changed then
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = keys[i], tonumber(next), tonumber(started)
    reply[n + 4], reply[n + 5], reply[n + 6] = tonumber(last), tonumber(stopped), tonumber(changed)
  end
end
return reply
