-- The limiters of a queue: a hash of their times, and a sorted set of their ends.
-- Uses: MAX_INSTANT, call, fetch.
-- Defines: LIMITER_KEPT, MAX_STOP, read_limiters, write_limiters, prune_limiters.
-- A record is the times next, started, last, stopped and changed of core.Limiter.

-- The limits of core/rate.go in µs.
local LIMITER_KEPT, MAX_STOP = 60000000, 86400000000

-- read_limiters returns the states of limiters by a clock that may have stepped back behind their
-- last changes; then moved is set, and the state must be written. A record that can't be read is
-- a stop until its end.
local function read_limiters(LIMITERS, ENDS, keys, now)
  local states = {}
  for i, text in ipairs(fetch('HMGET', LIMITERS, keys)) do
    local next, started, last, stopped, changed =
      string.match(text or '0 0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    local l = {next = tonumber(next), started = tonumber(started), last = tonumber(last)}
    l.stopped, l.changed = tonumber(stopped), tonumber(changed)
    if not changed then
      local till = tonumber(call('ZSCORE', ENDS, keys[i])) or 0
      l = {next = 0, started = 0, last = 0, changed = now}
      l.stopped = math.max(0, math.min(till, now + MAX_STOP, MAX_INSTANT))
    end

    local step = l.changed - now
    if step > 0 then
      l.next, l.started = math.max(0, l.next - step), math.max(0, l.started - step)
      l.last, l.stopped = math.max(0, l.last - step), math.max(0, l.stopped - step)
      l.changed, l.moved = now, true
    end
    states[i] = l
  end
  return states
end

-- write_limiters writes the states of limiters that have changed.
local function write_limiters(LIMITERS, ENDS, keys, states)
  local fields, scores = {}, {}
  for i, l in ipairs(states) do
    if l.moved then
      local n = #fields
      fields[n + 1] = keys[i]
      fields[n + 2] = string.format('%.0f %.0f %.0f %.0f %.0f', l.next, l.started, l.last, l.stopped, l.changed)
      scores[n + 1], scores[n + 2] = string.format('%.0f', math.max(l.next, l.started, l.stopped)), keys[i]
    end
  end
  for i = 1, #fields, 1000 do
    local last = math.min(i + 999, #fields)
    call('HSET', LIMITERS, unpack(fields, i, last))
    call('ZADD', ENDS, unpack(scores, i, last))
  end
end

-- prune_limiters removes limiters that are gone, at most 100 more than the call has changed.
local function prune_limiters(LIMITERS, ENDS, changed, now)
  local gone = call('ZRANGEBYSCORE', ENDS, '-inf', string.format('%.0f', now - LIMITER_KEPT), 'LIMIT', 0,
    changed + 100)
  if #gone == 0 then return end
  call('HDEL', LIMITERS, unpack(gone))
  call('ZREM', ENDS, unpack(gone))
end
