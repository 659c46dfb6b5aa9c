#!lua flags=allow-oom
-- Makes the lease last for its TTL from now, and returns when the shard's next job can be claimed.
-- KEYS: lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 ttl in µs
-- Returns {'ok', now, remaining, paused (1 or 0), due or -1} or {'lost'}
-- Uses: MAX_INSTANT, clock, first_due.

local LEASE = KEYS[1]
local owner, token, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = clock(ARGV[1])

local lease = redis.call('HMGET', LEASE, 'owner', 'token', 'held', 'alone')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end

-- look returns whether the queue is paused, and PerformAt of the next job or -1.
local function look()
  local base = string.sub(LEASE, 1, -2)
  local META, JOBS, READY, CLAIMS = base .. 'm', base .. 'j', base .. 'r', base .. 'c'
  redis.call('EXISTS', META, JOBS, READY, CLAIMS, LEASE) -- fails if another server has one of them
  local paused = string.sub(redis.call('GET', META), 3, 3) == '1' -- lib/shard.lua has its format
  return paused, first_due(paused, tonumber(lease[4] or 0), JOBS, READY, CLAIMS)
end

-- A lease must last while its slot migrates, although no server can read the head then.
local seen, paused, due = pcall(look)
if not seen then paused, due = false, now end

local expires = math.min(now + ttl, MAX_INSTANT)
redis.call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
return {'ok', now, expires - now, paused and 1 or 0, due}
