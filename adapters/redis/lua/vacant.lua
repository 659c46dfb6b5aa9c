#!lua flags=allow-oom
-- Looks whether a shard is empty and free, and removes it if so and if told to.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 remove (1 or 0)
-- Returns {'ok'}, {'unknown'}, {'jobs', queued, claimed, dead}, or
--   {'held', owner, remaining}

local now, remove = clock(ARGV[1]), ARGV[2] == '1'
if redis.call('EXISTS', KEYS[1]) == 0 then return {'unknown'} end
local queued, claimed = redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[5])
local dead, lease = redis.call('HLEN', KEYS[11]), KEYS[15]
if queued + claimed + dead > 0 then return {'jobs', queued, claimed, dead} end
if lasting(lease, now) > 0 then
  local l = redis.call('HMGET', lease, 'owner', 'expires', 'ttl')
  return {'held', l[1], math.min(tonumber(l[2]), now + tonumber(l[3])) - now}
end
if remove then redis.call('UNLINK', unpack(KEYS)) end
return {'ok'}
