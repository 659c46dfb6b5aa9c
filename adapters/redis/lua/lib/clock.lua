-- Defines: MAX_INSTANT, clock.

-- MAX_INSTANT is the latest instant, 2^53 µs: beyond it doubles have gaps.
local MAX_INSTANT = 9007199254740992

-- clock returns the given instant, or the server's time for ''. A script calls it once: before
-- Redis 7.2 time passes within a script.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
