#!lua
-- The commands of a turn of adapters/redis, without checks, repeats and encoding.
-- It settles all claimed jobs and claims the next ones.
-- ARGV: 1 prefix of the keys, 2 shard, 3 number of jobs to claim
-- Returns ids and records

local call, base, want = redis.call, ARGV[1] .. tonumber(ARGV[2]) .. '}:', tonumber(ARGV[3])
local META, JOBS, READY, PARKED, CLAIMS = base .. 'm', base .. 'j', base .. 'r', base .. 'w', base .. 'c'
local LEASE, CANCELS = base .. 'l', base .. 'k'

call('GET', META)
call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'recovered')
call('HLEN', CANCELS)
call('ZCARD', PARKED)

local held, freed = call('HGETALL', CLAIMS), {}
for i = 1, #held, 2 do freed[#freed + 1] = held[i] end

local now = call('TIME')
local ready, ids, claims = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, {}
for i = 1, math.min(#ready, 2 * want), 2 do ids[#ids + 1] = ready[i] end
local from, to = 1, math.min(32, #ids)
while from <= to do
  local recs = call('HMGET', JOBS, unpack(ids, from, to))
  for i = from, to do claims[2 * i - 1], claims[2 * i] = ids[i], recs[i - from + 1] end
  from, to = to + 1, math.min(to + 256, #ids)
end

if #ids > 0 then
  call('HSET', CLAIMS, unpack(claims))
  call('HDEL', JOBS, unpack(ids))
  call('ZREMRANGEBYRANK', READY, 0, #ids - 1)
end
if #freed > 0 then
  call('HDEL', CLAIMS, unpack(freed))
  call('HINCRBY', LEASE, 'processed', #freed)
end

call('HSET', LEASE, 'last', now[2], 'ttl', now[2], 'expires', now[1])
return claims
