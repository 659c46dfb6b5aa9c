#!lua
-- What a turn of adapters/redis asks of Redis, and nothing else: no checks, no
-- repeats, no encoding. It settles whatever is claimed and claims the next.
-- ARGV: 1 what the names of the keys begin with, 2 shard, 3 jobs wanted
-- Returns ids and records

local call, base, want = redis.call, ARGV[1] .. tonumber(ARGV[2]) .. '}:', tonumber(ARGV[3])
local META, JOBS, READY, PARKED, CLAIMS = base .. 'm', base .. 'j', base .. 'r', base .. 'w', base .. 'c'
local LEASE, CANCELS = base .. 'l', base .. 'k'

local now = call('TIME')
call('HMGET', META, 'shards', 'index', 'paused', 'recovered', 'processed', 'failed')
call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires')
call('HGETALL', CANCELS)

local freed, held = {}, call('HGETALL', CLAIMS)
for i = 1, #held, 2 do freed[#freed + 1] = held[i] end
if #freed > 0 then call('ZCARD', PARKED) end

local ready, ids, claims, pairs = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, {}, {}
for i = 1, math.min(#ready, 2 * want), 2 do ids[#ids + 1] = ready[i] end
for k = 1, #ids, 32 do
  local last = math.min(k + 31, #ids)
  for i, rec in ipairs(call('HMGET', JOBS, unpack(ids, k, last))) do
    claims[#claims + 1] = ids[k + i - 1]
    claims[#claims + 1] = rec
  end
end
call('HLEN', CLAIMS)

if #claims > 0 then call('HSET', CLAIMS, unpack(claims)) end
call('HSET', META, 'processed', now[2], 'failed', 0, 'recovered', 0)
call('HSET', LEASE, 'last', now[2], 'ttl', now[2], 'expires', now[1])
if #ids > 0 then call('HDEL', JOBS, unpack(ids)) end
if #freed > 0 then call('HDEL', CLAIMS, unpack(freed)) end
if #ids > 0 then call('ZREM', READY, unpack(ids)) end
return claims
