#!lua flags=allow-oom
-- Sets aside the record of an id in a place if the record can't be read or lacks a part, and lists
-- a sound record anew if no list has it. If the record is lost, it also sets aside other ids that
-- have lost theirs, among the first of each list.
-- KEYS: all of the jobs of the shard
-- ARGV: 1 now or '', 2 place: q for queued, c for claimed, k for the cancel of a claimed one, d
--   for dead; 3 id
-- Returns {}, if nothing is wrong, or what is at fault and why, as in lib/faults.lua, and the ids
-- Uses: READY, PARKED, CLAIMS, BYID, RTIME, RID, RCOUNT, DTIME, DID, GROUPS, LEASE, CANCELS,
--   ASIDE, META, GROUPED, call, clock, read_meta, wake, plan, packed, groups, claim_alone, hash_of,
--   set_key, lists_of, fault_of, put_aside.
--
-- lib/aside.lua has the form of a set-aside record. Payloads in a set of their own stay in that
-- set, which is renamed to ASIDE, a colon and the record's key.

local now, place, id = clock(ARGV[1]), ARGV[2], ARGV[3]
local MOST, hash = 250, hash_of[place]

local index = read_meta()
local what, why = fault_of(place, id)
if not what then return {} end
why = string.gsub(tostring(why), '^user_script:%d+: ', '')

-- list_anew lists a job or a dead letter as of now, but a failed job as of its retry, if that is
-- known: a held job must not run.
local function list_anew()
  local stored, at = call('HGET', hash, id), string.format('%d', now)
  if place == 'd' then
    plan.zadd(DTIME, at, id)
    plan.zadd(DID, '0', id)
    plan.zadd(groups.list(packed.decode_dead(stored, now).group), at, id)
    return
  end

  local retry = packed.decode(stored, now).retry
  at = retry >= 0 and call('ZSCORE', RTIME, id) or at
  plan.zadd(call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY, at, id)
  if index then plan.zadd(BYID, '0', id) end
  if retry >= 0 then plan.zadd(RTIME, at, id); plan.zadd(RID, '0', id); plan.zadd(RCOUNT, retry, id) end
end

-- unlist removes an id from all lists. A dead letter's record may name a wrong group, so the id is
-- removed from whichever group's list has it.
local function unlist(other)
  local lists = place == 'q' and {READY, PARKED, BYID, RTIME, RID, RCOUNT} or {DTIME, DID}
  for _, list in ipairs(lists) do plan.zrem(list, other) end
  for _, name in ipairs(place == 'd' and call('HKEYS', GROUPS) or {}) do
    if call('ZSCORE', groups.list(name), other) then
      plan.zrem(GROUPED .. name, other)
      groups.leave(name)
    end
  end
end

-- aside sets aside the faulty record of an id.
local function aside(other, fault)
  local stored = call('HGET', hash, other)
  local key = put_aside(now, place, other, why, fault == 'record' and stored or '')
  local set = set_key[place] and set_key[place] .. other

  if set and call('EXISTS', set, META) == 2 then
    call('EXISTS', ASIDE .. ':' .. key, META) -- fails here, not in plan.write(), while the slot migrates
    plan.rename(set, ASIDE .. ':' .. key)
  end

  if fault == 'record' then plan.hdel(hash, other) end
  if set and (fault == 'record' or not stored) then unlist(other) end
end

local reply = {what, why, id}
if what == 'unlisted' then list_anew()
else
  aside(id, what)
  local lost = set_key[place] and call('HEXISTS', hash, id) == 0
  for _, list in ipairs(lost and lists_of[place] or {}) do
    for _, other in ipairs(call('ZRANGE', list, 0, MOST - 1)) do
      if other ~= id and call('HEXISTS', hash, other) == 0 then
        aside(other, 'set')
        reply[#reply + 1] = other
      end
    end
  end
end

if place == 'c' then
  plan.hdel(CANCELS, id)
  plan.hdel(LEASE, ':' .. id) -- its note
  local waits = call('ZSCORE', PARKED, id)
  if waits then plan.zadd(READY, waits, id); plan.zrem(PARKED, id) end
  if tonumber(call('HGET', LEASE, 'alone') or 0) > 0 then -- a job that runs alone has no others beside it
    local alone, claims = 0, call('HGETALL', CLAIMS)
    for i = 2, #claims, 2 do if claims[i - 1] ~= id and claim_alone(claims[i]) then alone = alone + 1 end end
    plan.hset(LEASE, 'alone', alone)
  end
end

groups.finish()
plan.write()
if place == 'c' or what == 'unlisted' then wake() end
return reply
