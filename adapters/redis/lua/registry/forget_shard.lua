#!lua flags=allow-oom
-- Reports whether a shard is empty and free, and, if it is, removes it on request.
-- KEYS: all of the shard, and of the first one those of the history, days and tracked too
-- ARGV: 1 now or '', 2 remove (1 or 0)
-- Returns {'ok'}, {'unknown'}, {'jobs'}, or {'held', owner, remaining}
-- Uses: clock, current_token.

local META, JOBS, CLAIMS, DEAD, GROUPS, LEASE = KEYS[1], KEYS[2], KEYS[5], KEYS[11], KEYS[15], KEYS[16]
local ASIDE, SCHEDULES = KEYS[18], KEYS[19]
local now, remove = clock(ARGV[1]), ARGV[2] == '1'

if redis.call('EXISTS', META) == 0 then return {'unknown'} end
if redis.call('EXISTS', JOBS, CLAIMS, DEAD, ASIDE, SCHEDULES) > 0 then return {'jobs'} end
if current_token(LEASE, now) > 0 then
  local lease = redis.call('HMGET', LEASE, 'owner', 'expires', 'ttl')
  return {'held', lease[1], math.min(tonumber(lease[2]), now + tonumber(lease[3])) - now}
end

if remove then
  for _, name in ipairs(redis.call('HKEYS', GROUPS)) do redis.call('UNLINK', string.sub(META, 1, -2) .. 'g:' .. name) end
  redis.call('UNLINK', unpack(KEYS))
end
return {'ok'}
