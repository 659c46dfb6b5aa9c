#!lua flags=allow-oom
-- Leases the shard to an owner and returns when its next job can be claimed, or refuses the lease.
-- KEYS: meta jobs ready claims lease cancels
-- ARGV: 1 now or '', 2 "shards generation", 3 owner, 4 attempt, 5 ttl in µs
-- Returns {'ok', token, now, remaining, paused (1 or 0), due or -1, claims, cancels}, both lists
--   as id, value, ...; or {'unknown'}, {'mismatch', "shards generation"}, {'stale'}, {'held',
--   owner, remaining}
-- Uses: META, JOBS, READY, CLAIMS, LEASE, MAX_INSTANT, clock, first_due, bounds, read_cancels,
--   hand_over.
--
-- The acquire and, as orphans, the turns that follow hand over what earlier leases left. The file
-- lib/lease.lua lists the fields of the lease.

local ACQUIRE_BYTES = 262144 -- core.AcquireBytes
local layout, owner, attempt, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local now = clock(ARGV[1])

local record = redis.call('GET', META) -- lib/shard.lua has its format
if not record then return {'unknown'} end
local found = string.match(record, '^%d %d (%d+ %d+)')
if found ~= layout then return {'mismatch', found} end

-- The fields are read below by their positions here: lease[1] is the owner, lease[10] is noted.
local lease = redis.call('HMGET', LEASE, 'owner', 'attempt', 'token', 'ttl', 'expires', 'held', 'alone', 'handed', 'orphans', 'noted')
local mine, held, last = lease[1] == owner, lease[6] == '1', tonumber(lease[2] or 0)
local token, remaining = tonumber(lease[3] or 0), 0
if held then
  remaining = math.max(0, math.min(tonumber(lease[5]), now + tonumber(lease[4])) - now)
end

if mine and (attempt < last or attempt == last and not held) then return {'stale'} end
if not mine and remaining > 0 then
  if now + remaining ~= tonumber(lease[5]) then redis.call('HSET', LEASE, 'expires', now + remaining) end
  return {'held', lease[1], remaining}
end

local again = mine and attempt == last and remaining > 0
if not again then token = math.max(token + 1, now) end
local claims, handed, rest = {}, '', true
if not (again and lease[9] == '1' and lease[8] == '') then -- else nothing was handed over yet
  claims, handed, rest = hand_over(token, '', again and lease[8] or '', bounds.new(ACQUIRE_BYTES, true), {})
end

local cancels = read_cancels()
local paused = string.sub(record, 3, 3) == '1'
local due = first_due(paused, tonumber(lease[7] or 0), JOBS, READY, CLAIMS)
if not paused and (rest and not again or again and lease[9] == '1') and (due < 0 or due > now) then due = now end

local expires = math.min(now + ttl, MAX_INSTANT)
if not again then
  if lease[10] ~= lease[3] then -- the shard's last holder kept no notes, so older notes are wrong
    for _, field in ipairs(redis.call('HKEYS', LEASE)) do
      if string.sub(field, 1, 1) == ':' then redis.call('HDEL', LEASE, field) end
    end
  end
  redis.call('HSET', LEASE, 'owner', owner, 'attempt', attempt, 'token', token, 'last', 0,
    'ttl', ttl, 'expires', expires, 'held', 1, 'handed', rest and handed or '', 'orphans', rest and 1 or 0,
    'turned', '', 'large', '', 'noted', token)
else
  redis.call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
end

return {'ok', token, now, expires - now, paused and 1 or 0, due, claims, cancels}
