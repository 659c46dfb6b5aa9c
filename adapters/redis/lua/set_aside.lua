#!lua flags=allow-oom
-- Sets aside what is stored of an id in a place, if it can't be read.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 place: q for queued, c for claimed, k for the cancel of
--   a claimed one, d for dead; 3 id
-- Returns 1, or 0 if it can be read or is not there
-- Uses: JOBS, READY, PARKED, CLAIMS, BYID, RTIME, RID, RCOUNT, DEAD, DTIME, DID, GROUPS, LEASE, CANCELS,
--   ASIDE, PAYLOADS, DPAYLOADS, GROUPED, call, pack, clock, wake, plan, packed, groups, claim_weight,
--   claim_alone, check_cancel.
--
-- What is set aside is a field of ASIDE: its key is the time in 16 digits, the place and the id, and its value when it
-- was, the lengths of id and reason, place, id, reason, and the record as it is. Payloads in a set of their own
-- keep it, under the name of ASIDE, a colon and the key.

local now, place, id = clock(ARGV[1]), ARGV[2], ARGV[3]
local hash = ({q = JOBS, c = CLAIMS, k = CANCELS, d = DEAD})[place]
local stored = call('HGET', hash, id)
if not stored then return 0 end
local ok, why
if place == 'c' then ok, why = pcall(claim_weight, stored)
elseif place == 'k' then ok, why = pcall(check_cancel, stored)
elseif place == 'd' then ok, why = pcall(packed.decode_dead, stored, 0)
else ok, why = pcall(packed.decode, stored, 0) end
if ok then return 0 end
why = string.gsub(tostring(why), '^user_script:%d+: ', '')

-- What it says of its group may be wrong: it leaves whatever list has it.
for _, name in ipairs(place == 'd' and call('HKEYS', GROUPS) or {}) do
  if call('ZSCORE', groups.list(name), id) then
    plan.zrem(GROUPED .. name, id)
    groups.leave(name)
  end
end

local at, key = now, nil
repeat
  key = string.format('%016.0f', at) .. place .. id
  at = at + 1
until call('HEXISTS', ASIDE, key) == 0
local set = ({q = PAYLOADS, d = DPAYLOADS})[place]
if set and call('EXISTS', set .. id, hash) == 2 then call('RENAME', set .. id, ASIDE .. ':' .. key) end
call('HSET', ASIDE, key, pack('>I8I2I2', now, #id, #why) .. place .. id .. why .. stored)
call('HDEL', hash, id)
if place == 'k' then return 1
elseif place == 'd' then
  call('ZREM', DTIME, id)
  call('ZREM', DID, id)
  groups.finish()
  plan.write()
  return 1
elseif place == 'q' then
  for _, list in ipairs({READY, PARKED, BYID, RTIME, RID, RCOUNT}) do call('ZREM', list, id) end
  return 1
end

call('HDEL', CANCELS, id)
local waits = call('ZSCORE', PARKED, id)
if waits then
  call('ZREM', PARKED, id)
  call('ZADD', READY, waits, id)
end
if tonumber(call('HGET', LEASE, 'alone') or 0) > 0 then -- what runs alone has no others beside it
  local alone = 0
  local claims = call('HGETALL', CLAIMS)
  for i = 2, #claims, 2 do if claim_alone(claims[i]) then alone = alone + 1 end end
  call('HSET', LEASE, 'alone', alone)
end
wake()
return 1
