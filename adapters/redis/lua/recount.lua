#!lua
-- Corrects the lists that the jobs and dead letters of a shard are counted by, and the counts of groups.
-- KEYS: all of the shard
-- ARGV: 1 now or ''
-- Returns {'ok', counts before, counts after, what can't be read}, counts as lib/counts.lua says, and the last, of the
--   first so many, as place and id, as lib/faults.lua has them; or {'unknown'}. What can't be read it passes over.
-- Uses: META, JOBS, READY, PARKED, CLAIMS, BYID, RTIME, RID, RCOUNT, DEAD, DTIME, DID, GROUPS, LEASE, ASIDE, PAYLOADS,
--   DPAYLOADS, call, sub, byte, pack, clock, fetch, read_meta, plan, packed, groups, claim_weight, claim_alone, counts.

local now = clock(ARGV[1])
local index = read_meta()
if index == nil then return {'unknown'} end
local function count() return counts(READY, PARKED, CLAIMS, RID, DEAD, LEASE, ASIDE) end

-- each calls visit with the members of a hash or a sorted set and their values or
-- scores, some at a time.
local function each(command, key, visit)
  local cursor = '0'
  repeat
    local some, names, values = call(command, key, cursor, 'COUNT', 500), {}, {}
    for i = 1, #some[2], 2 do
      names[#names + 1] = some[2][i]
      values[#values + 1] = some[2][i + 1]
    end
    cursor = some[1]
    visit(names, values)
  until cursor == '0'
end

-- correct plans that a sorted set has the ids with these scores: false for an id that it
-- must not have, true for one whose score may be any.
local function correct(key, ids, scores)
  local there = fetch('ZMSCORE', key, ids)
  for i, id in ipairs(ids) do
    local score = scores[i]
    if score == true then score = there[i] or now end
    if not score and there[i] then plan.zrem(key, id)
    elseif score and (not there[i] or tonumber(there[i]) ~= tonumber(score)) then plan.zadd(key, string.format('%.0f', score), id) end
  end
end

-- restrict plans that a sorted set has no members but those of a hash.
local function restrict(key, hash)
  each('ZSCAN', key, function(ids)
    local packed_jobs = fetch('HMGET', hash, ids)
    for i, id in ipairs(ids) do if not packed_jobs[i] then plan.zrem(key, id) end end
  end)
end

local MOST_FAULTS, faults = 1000, {}
local function fault(place, id)
  if #faults < 2 * MOST_FAULTS then faults[#faults + 1], faults[#faults + 2] = place, id end
end

-- sound returns those of some ids, in a place, whose packed jobs can be read and have their payloads, and the jobs.
local function sound(place, sets, decoder, all, packed_jobs)
  local ids, jobs = {}, {}
  for i, id in ipairs(all) do
    local ok, job = pcall(decoder, packed_jobs[i], 0)
    if ok and job.many then
      ok = call('EXISTS', sets .. id, META) == 2 and type(redis.pcall('ZCARD', sets .. id)) == 'number'
    end
    if ok then ids[#ids + 1], jobs[#jobs + 1] = id, job else fault(place, id) end
  end
  return ids, jobs
end

local before = count()
each('HSCAN', JOBS, function(all, packed_jobs)
  local ids, jobs = sound('q', PAYLOADS, packed.decode, all, packed_jobs)
  local ready, parked, claimed = fetch('ZMSCORE', READY, ids), fetch('ZMSCORE', PARKED, ids), fetch('HMGET', CLAIMS, ids)
  local runs, waits, retries, tries, zeros, listed = {}, {}, {}, {}, {}, {}
  for i in ipairs(ids) do
    local at = tonumber(ready[i] or parked[i] or now)
    local retry = jobs[i].retry
    runs[i], waits[i] = not claimed[i] and at, claimed[i] and at
    retries[i], tries[i], zeros[i], listed[i] = retry >= 0 and at, retry >= 0 and retry, retry >= 0 and 0, index and 0
  end
  correct(READY, ids, runs)
  correct(PARKED, ids, waits)
  correct(RTIME, ids, retries)
  correct(RCOUNT, ids, tries)
  correct(RID, ids, zeros)
  correct(BYID, ids, listed)
end)

local names = {} -- of groups
for _, name in ipairs(call('HKEYS', GROUPS)) do names[name] = true end
each('HSCAN', DEAD, function(all, packed_jobs)
  local ids, jobs = sound('d', DPAYLOADS, packed.decode_dead, all, packed_jobs)
  local changed, times, zeros, grouped = fetch('ZMSCORE', DTIME, ids), {}, {}, {}
  for i, id in ipairs(ids) do
    local name = jobs[i].group
    local list = grouped[name] or {ids = {}, times = {}}
    times[i], zeros[i], names[name], grouped[name] = true, 0, true, list
    list.ids[#list.ids + 1], list.times[#list.times + 1] = id, tonumber(changed[i] or now)
  end
  correct(DTIME, ids, times)
  correct(DID, ids, zeros)
  for name, list in pairs(grouped) do correct(groups.list(name), list.ids, list.times) end
end)
for name in pairs(names) do
  each('ZSCAN', groups.list(name), function(ids)
    local packed_jobs = fetch('HMGET', DEAD, ids)
    for i, id in ipairs(ids) do
      local value = packed_jobs[i]
      if not value or sub(value, 2, (byte(value) or 0) + 1) ~= name then plan.zrem(groups.list(name), id) end
    end
  end)
end
for _, key in ipairs({READY, PARKED, RTIME, RCOUNT, RID, BYID}) do restrict(key, JOBS) end
for _, key in ipairs({DTIME, DID}) do restrict(key, DEAD) end

local alone = 0
each('HSCAN', CLAIMS, function(ids, values)
  for i, value in ipairs(values) do
    if not pcall(claim_weight, value) then fault('c', ids[i])
    elseif claim_alone(value) then alone = alone + 1 end
  end
end)
if (tonumber(call('HGET', LEASE, 'alone') or 0)) ~= alone then plan.hset(LEASE, 'alone', alone) end
plan.write()

for name in pairs(names) do
  local n, stored = call('ZCARD', groups.list(name)), call('HGET', GROUPS, name)
  if n == 0 then call('HDEL', GROUPS, name)
  else
    local times = stored and #stored == 24 and sub(stored, 9)
    if not times then
      local first, last = call('ZRANGE', groups.list(name), 0, 0, 'WITHSCORES'), call('ZRANGE', groups.list(name), -1, -1, 'WITHSCORES')
      times = pack('>I8I8', tonumber(first[2]), tonumber(last[2]))
    end
    call('HSET', GROUPS, name, pack('>I8', n) .. times)
  end
end
return {'ok', before, count(), faults}
