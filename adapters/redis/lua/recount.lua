#!lua
-- Goes through all entries of a shard and corrects the lists that they are counted
-- by.
-- KEYS: all of the shard
-- ARGV: 1 now or ''
-- Returns {'ok', counts before, counts after}, as lib/counts.lua says, or {'unknown'}

local now = clock(ARGV[1])
local index = queue()
if index == nil then return {'unknown'} end
local function count() return counts(READY, PARKED, CLAIMS, RID, DEAD, LEASE) end

-- each hands on the members of a hash or a sorted set, each with what belongs to
-- it, some at a time.
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

-- belong plans that a sorted set has its members, with these scores; false is for
-- those it must not have, and true for those whose score is any.
local function belong(key, ids, scores)
  local there = fetch('ZMSCORE', key, ids)
  for i, id in ipairs(ids) do
    local score = scores[i]
    if score == true then score = there[i] or now end
    if not score and there[i] then zrem(key, id)
    elseif score and (not there[i] or tonumber(there[i]) ~= tonumber(score)) then zadd(key, string.format('%.0f', score), id) end
  end
end

-- only plans that a sorted set has no members but those of a hash.
local function only(key, hash)
  each('ZSCAN', key, function(ids)
    local recs = fetch('HMGET', hash, ids)
    for i, id in ipairs(ids) do if not recs[i] then zrem(key, id) end end
  end)
end

local before = count()
each('HSCAN', JOBS, function(ids, recs)
  local ready, parked, claimed = fetch('ZMSCORE', READY, ids), fetch('ZMSCORE', PARKED, ids), fetch('HMGET', CLAIMS, ids)
  local runs, waits, retries, tries, zeros, listed = {}, {}, {}, {}, {}, {}
  for i in ipairs(ids) do
    local at = tonumber(ready[i] or parked[i] or now)
    local retry = decode(recs[i], at).retry
    runs[i], waits[i] = not claimed[i] and at, claimed[i] and at
    retries[i], tries[i], zeros[i], listed[i] = retry >= 0 and at, retry >= 0 and retry, retry >= 0 and 0, index and 0
  end
  belong(READY, ids, runs)
  belong(PARKED, ids, waits)
  belong(RTIME, ids, retries)
  belong(RCOUNT, ids, tries)
  belong(RID, ids, zeros)
  belong(BYID, ids, listed)
end)
each('HSCAN', DEAD, function(ids)
  local times, zeros = {}, {}
  for i in ipairs(ids) do times[i], zeros[i] = true, 0 end
  belong(DTIME, ids, times)
  belong(DID, ids, zeros)
end)
for _, key in ipairs({READY, PARKED, RTIME, RCOUNT, RID, BYID}) do only(key, JOBS) end
for _, key in ipairs({DTIME, DID}) do only(key, DEAD) end

local alone = 0
each('HSCAN', CLAIMS, function(_, values)
  for _, value in ipairs(values) do
    if band(byte(value, 35 + parse('>I2', value, 25)), ALONE) > 0 then alone = alone + 1 end
  end
end)
if (tonumber(call('HGET', LEASE, 'alone') or 0)) ~= alone then hset(LEASE, 'alone', alone) end
write()
return {'ok', before, count()}
