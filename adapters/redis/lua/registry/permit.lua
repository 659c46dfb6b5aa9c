#!lua flags=allow-oom
-- Makes an owner hold permits of a queue, removes owners whose TTL is over or that can't be read,
-- and wakes nodes that wait for permits if some become free.
-- KEYS: permits
-- ARGV: 1 now or '', 2 owner, 3 attempt, 4 limit, 5 hold, 6 want, 7 ttl in µs, 8 channel,
--   9 whether the queue is known to be declared, if it has no permits (1 or 0)
-- Returns {'ok', now, remaining, held, {owner, held, want, ...}}, {'stale'} or {'unknown'}
-- Uses: MAX_INSTANT, clock.

local PERMITS = KEYS[1]
local owner, attempt, limit, channel = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[8]
local hold, want, ttl, declared = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[9] == '1'
local now = clock(ARGV[1])

local stored = redis.call('HGETALL', PERMITS)
if #stored == 0 and not declared then return {'unknown'} end

local had, taken, wanted = 0, 0, false
local holders, gone, cut = {}, {}, {}
for i = 1, #stored, 2 do
  local number, held, wants, length, till = string.match(stored[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  held, wants, till = tonumber(held), tonumber(wants), tonumber(till)
  if not till or till <= now then
    gone[#gone + 1] = stored[i]
  elseif stored[i] == owner then
    if attempt < tonumber(number) then return {'stale'} end
    had = held
  else
    taken, wanted = taken + held, wanted or wants > held
    holders[#holders + 1] = stored[i]
    holders[#holders + 1] = held
    holders[#holders + 1] = wants
    if till > now + length then -- the clock stepped back
      cut[#cut + 1] = {stored[i], string.format('%s %d %d %s %.0f', number, held, wants, length, now + length)}
    end
  end
end

local held = math.min(hold, math.max(had, limit - taken))
local expires = math.min(now + ttl, MAX_INSTANT)

for _, id in ipairs(gone) do redis.call('HDEL', PERMITS, id) end
for _, other in ipairs(cut) do redis.call('HSET', PERMITS, other[1], other[2]) end
if want == 0 then
  redis.call('HDEL', PERMITS, owner)
else
  redis.call('HSET', PERMITS, owner, string.format('%.0f %d %d %.0f %.0f', attempt, held, want, ttl, expires))
  holders[#holders + 1] = owner
  holders[#holders + 1] = held
  holders[#holders + 1] = want
end

if held < had and wanted then redis.pcall('SPUBLISH', channel, '') end
return {'ok', now, expires - now, held, holders}
