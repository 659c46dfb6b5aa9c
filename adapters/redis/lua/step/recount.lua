#!lua
-- Takes a step of a recount. It visits some entries of a shard and of its lists, and corrects the
-- lists that have, or should have, their ids, and the counts of groups. It does the same for the
-- lists of schedules.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 the place that the step before has returned, or '', 3 about how many
--   entries to visit
-- Returns {'ok', counts before, counts after, how many entries it has counted, the place to
--   continue from or '', what can't be read, the field and the record of each schedule that it has
--   visited by its record and can read}, counts as in lib/counts.lua, and what can't be read as
--   place and id, as lib/faults.lua has them, or s and the field of a schedule; {'type', a key, what
--   it should be}, if another program has written it; {'place'} for an invalid place; or
--   {'unknown'}. It skips records that can't be read.
-- Uses: META, JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID,
--   DMETAS, GROUPS, LEASE, CANCELS, ASIDE, PAYLOADS, DPAYLOADS, SCHEDULES, TICKS, NAMED, call, sub,
--   pack, parse, precedes, clock, fetch, read_meta, bounds, plan, packed, groups, noted,
--   claim_weight, claim_alone, claims_after, counts, schedules.
--
-- The step that meets an id corrects all lists by the id's record, and other scripts change
-- records and lists together. So once all records and then all lists have been visited, they
-- agree, whatever has changed between the steps. The count of a group becomes the size of its list
-- in the step that reaches the list's end. A place is a scan's cursor, which means nothing to
-- another server: there the phase begins anew.

local now, left, bytes = clock(ARGV[1]), tonumber(ARGV[3]), bounds.most_bytes
local SCANNED, MOST_CLAIMS, MAX_CURSOR = 16, 1000, '18446744073709551615'
local index = read_meta()
if index == nil then return {'unknown'} end
local function count() return counts(JOBS, READY, PARKED, CLAIMS, RTIME, RID, DEAD, LEASE, ASIDE) end

local wrong -- the reply for the first key that has a wrong type
local kinds = {HLEN = 'hash', ZCARD = 'sorted set'}

-- typed reports whether a key has the type that belongs to a size command.
local function typed(command, key)
  local size = redis.pcall(command, key)
  if type(size) == 'table' and string.find(size.err or '', 'WRONGTYPE', 1, true) then wrong = wrong or {'type', key, kinds[command]} end
  return type(size) == 'number'
end

for _, key in ipairs({JOBS, DEAD, CLAIMS, LEASE, CANCELS, GROUPS, METAS, DMETAS, ASIDE, SCHEDULES}) do typed('HLEN', key) end
for _, key in ipairs({READY, PARKED, RTIME, RID, RCOUNT, BYID, DTIME, DID, TICKS, NAMED}) do typed('ZCARD', key) end
if wrong then return wrong end

local function spent() return left <= 0 or bytes <= 0 end

-- scan calls visit with members of a hash or a sorted set, a few at a time, and the values of the
-- hash, from a cursor on until the step has visited enough. It returns the cursor to continue from
-- and the member that it has reached, or nothing at the end. Redis returns a small hash or set
-- whole, whatever COUNT is. So its members are visited in order: a member that is there all the
-- time and comes before the last visited one was visited, even if the key has become large
-- meanwhile. A page of a large one is visited whole, since another page may begin with the same
-- cursor later.
local function scan(command, key, cursor, last, visit)
  repeat
    local some, names, by = call(command, key, cursor, 'COUNT', SCANNED), {}, {}
    for i = 1, #some[2], 2 do
      local name = some[2][i]
      by[name] = some[2][i + 1]
      if precedes(last, name) then names[#names + 1] = name end
    end

    local whole = cursor == '0' and some[1] == '0'
    if whole then table.sort(names, precedes) end
    if #names == 0 then left = left - 1 end
    for first = 1, #names, SCANNED do
      local part, values = {unpack(names, first, math.min(first + SCANNED - 1, #names))}, {}
      for i, name in ipairs(part) do values[i] = by[name] end
      left = left - #part
      visit(part, values)
      if whole and spent() and first + #part <= #names then return '0', part[#part] end
    end

    cursor, last = some[1], ''
    if cursor ~= '0' and spent() then return cursor, '' end
  until cursor == '0'
end

local faults = {}
local function fault(place, id) faults[#faults + 1], faults[#faults + 2] = place, id end

-- sound returns the ids of a place that can be corrected, with their jobs: false where nothing is
-- stored. It leaves out, as a fault, an id whose packed job can't be read or lacks its payloads.
local function sound(place, sets, decoder, all, packed_jobs)
  local ids, jobs = {}, {}
  for i, id in ipairs(all) do
    local ok, job = true, false
    if packed_jobs[i] then
      bytes = bytes - #packed_jobs[i]
      ok, job = pcall(decoder, packed_jobs[i], 0)
      if ok and job.many then
        ok = call('EXISTS', sets .. id, META) == 2 and type(redis.pcall('ZCARD', sets .. id)) == 'number'
      end
    end
    if ok then ids[#ids + 1], jobs[#jobs + 1] = id, job else fault(place, id) end
  end
  return ids, jobs
end

-- correct plans that a sorted set has the ids with these scores: false for an id that it must not
-- have, true for an id with any score.
local function correct(key, ids, scores)
  local there = fetch('ZMSCORE', key, ids)
  for i, id in ipairs(ids) do
    local score = scores[i]
    if score == true then score = there[i] or now end
    if not score and there[i] then plan.zrem(key, id)
    elseif score and (not there[i] or tonumber(there[i]) ~= tonumber(score)) then plan.zadd(key, string.format('%.0f', score), id) end
  end
end

local function mend_jobs(all, packed_jobs)
  local ids, jobs = sound('q', PAYLOADS, packed.decode, all, packed_jobs)
  local ready, parked, retried = fetch('ZMSCORE', READY, ids), fetch('ZMSCORE', PARKED, ids), fetch('ZMSCORE', RTIME, ids)
  local runs, waits, retries, tries, zeros, listed = {}, {}, {}, {}, {}, {}

  for i, id in ipairs(ids) do
    local job, claimed = jobs[i], call('HEXISTS', CLAIMS, id) == 1
    local failed = job and job.retry >= 0
    local at = job and tonumber(ready[i] or parked[i] or (failed and retried[i]) or now)
    runs[i], waits[i] = not claimed and at, claimed and at
    retries[i], tries[i], zeros[i], listed[i] = failed and at, failed and job.retry, failed and 0, job and index and 0
  end

  correct(READY, ids, runs)
  correct(PARKED, ids, waits)
  correct(RTIME, ids, retries)
  correct(RCOUNT, ids, tries)
  correct(RID, ids, zeros)
  correct(BYID, ids, listed)
end

local met, finished = {}, {} -- groups: those of dead letters, by name, and those whose lists have been read to the end

local function mend_dead(all, packed_jobs)
  local ids, jobs = sound('d', DPAYLOADS, packed.decode_dead, all, packed_jobs)
  local changed, times, zeros, grouped = fetch('ZMSCORE', DTIME, ids), {}, {}, {}
  for i, id in ipairs(ids) do
    local job = jobs[i]
    times[i], zeros[i] = job and true, job and 0
    if job then
      local list = grouped[job.group] or {ids = {}, times = {}}
      grouped[job.group] = list
      list.ids[#list.ids + 1], list.times[#list.times + 1] = id, tonumber(changed[i] or now)
    end
  end

  correct(DTIME, ids, times)
  correct(DID, ids, zeros)
  for name, list in pairs(grouped) do
    met[name] = true
    if typed('ZCARD', groups.list(name)) then correct(groups.list(name), list.ids, list.times) end
  end
end

-- mend_schedules corrects the lists of fields with these records. It calls each, if given, with
-- those that can be read.
local function mend_schedules(fields, records, each)
  local ticks, named, zeros = {}, {}, {}
  local sound_ones = {}
  for i, field in ipairs(fields) do
    local record, ok, s = records[i], true, nil
    if record then
      bytes = bytes - #record
      ok, s = pcall(schedules.decode, record, field)
    end
    if not ok then fault('s', field)
    else
      if each then each(field, record) end
      sound_ones[#sound_ones + 1] = field
      ticks[#sound_ones] = s and s.tick or false
      for _, member in ipairs({schedules.named(field)}) do
        named[#named + 1] = member
        zeros[#named] = s and 0
      end
    end
  end

  correct(TICKS, sound_ones, ticks)
  correct(NAMED, named, zeros)
end

-- Phases continue from a cursor, a group or claim, and a member that scan has reached. They return
-- the next ones, or nothing at the end.

local function records(hash, mend)
  return function(cursor, _, last)
    local at, member = scan('HSCAN', hash, cursor, last, mend)
    if at then return at, '', member end
  end
end

local counted = 0
local function entries(hash, mend)
  return records(hash, function(ids, packed_jobs)
    counted = counted + #ids
    mend(ids, packed_jobs)
  end)
end

local function listed(list, hash, mend)
  return function(cursor, _, last)
    local at, member = scan('ZSCAN', list, cursor, last, function(ids) mend(ids, fetch('HMGET', hash, ids)) end)
    if at then return at, '', member end
  end
end

-- The caller decodes the visited records of schedules, because only its decoder knows all rules.
local visited = {}
local function visit(field, record) visited[#visited + 1], visited[#visited + 2] = field, record end

-- named_schedules visits the members of NAMED, two of each schedule.
local function named_schedules(cursor, _, last)
  local at, member = scan('ZSCAN', NAMED, cursor, last, function(members)
    local fields = {}
    for i, m in ipairs(members) do
      fields[i] = schedules.field_of(m)
      local by_name, by_id = schedules.named(fields[i])
      if m ~= by_name and m ~= by_id then plan.zrem(NAMED, m) end
    end
    mend_schedules(fields, fetch('HMGET', SCHEDULES, fields))
  end)
  if at then return at, '', member end
end

local function grouped(cursor, from, last)
  local names, known = call('HKEYS', GROUPS), {}
  for _, name in ipairs(names) do known[name] = true end
  for name in pairs(met) do if not known[name] then names[#names + 1] = name end end
  table.sort(names, precedes)
  for _, name in ipairs(names) do
    if not precedes(name, from) then
      if spent() then return '0', name, '' end
      if typed('ZCARD', groups.list(name)) then
        local here = name == from
        local at, member = scan('ZSCAN', groups.list(name), here and cursor or '0', here and last or '', function(ids)
          for i, packed_job in ipairs(fetch('HMGET', DEAD, ids)) do
            bytes = bytes - #(packed_job or '')
            if not packed_job or packed.group_of(packed_job) ~= name then plan.zrem(groups.list(name), ids[i]) end
          end
        end)
        if at then return at, name, member end
        finished[#finished + 1] = name
      end
    end
  end
end

local function claimed(_, after)
  for _, id in ipairs(claims_after(after)) do
    if spent() then return '0', after, '' end
    local value = call('HGET', CLAIMS, id)
    left, bytes, counted, after = left - 1, bytes - #value, counted + 1, id
    if not pcall(claim_weight, value) then fault('c', id) end
  end
end

-- count_alone returns how many claims run alone. If there are more claims than a step reads it is
-- 0, since a job that runs alone is claimed only when nothing else is. A count above 0 would stop
-- the shard once those claims are settled, as only the claim of such a job lowers it.
local function count_alone()
  local alone, size, ids = 0, 0, call('HKEYS', CLAIMS)
  if #ids > MOST_CLAIMS then return 0 end
  for _, id in ipairs(ids) do
    local receipt, _, _, single = noted(id)
    if not receipt then
      if size > bounds.most_bytes then return 0 end
      local value = call('HGET', CLAIMS, id)
      size, single = size + #value, claim_alone(value)
    end
    if single then alone = alone + 1 end
  end
  return alone
end

-- recount_group sets the count of a group to the size of its list if exact is set, and otherwise
-- raises it to that size.
local function recount_group(name, exact)
  local n, stored = call('ZCARD', groups.list(name)), call('HGET', GROUPS, name)
  local times = stored and #stored == 24 and sub(stored, 9)
  local was = times and parse('>I8', stored) or 0

  if n == 0 then
    if exact then call('HDEL', GROUPS, name) end
    return
  end
  if n == was or n < was and not exact then return end
  if not times then
    local first, last = call('ZRANGE', groups.list(name), 0, 0, 'WITHSCORES'), call('ZRANGE', groups.list(name), -1, -1, 'WITHSCORES')
    times = pack('>I8I8', tonumber(first[2]), tonumber(last[2]))
  end
  call('HSET', GROUPS, name, pack('>I8', n) .. times)
end

local phases = {
  {'j', entries(JOBS, mend_jobs)}, {'x', entries(DEAD, mend_dead)},
  {'r', listed(READY, JOBS, mend_jobs)}, {'w', listed(PARKED, JOBS, mend_jobs)}, {'rt', listed(RTIME, JOBS, mend_jobs)},
  {'ri', listed(RID, JOBS, mend_jobs)}, {'rc', listed(RCOUNT, JOBS, mend_jobs)}, {'i', listed(BYID, JOBS, mend_jobs)},
  {'xt', listed(DTIME, DEAD, mend_dead)}, {'xi', listed(DID, DEAD, mend_dead)}, {'xg', grouped}, {'c', claimed},
  {'s', records(SCHEDULES, function(fields, texts) mend_schedules(fields, texts, visit) end)}, {'st', listed(TICKS, SCHEDULES, mend_schedules)}, {'sn', named_schedules},
}

local function server() return string.match(call('INFO', 'server'), 'run_id:(%x+)') or '' end

local at, cursor, name, last = 1, '0', '', ''
if ARGV[2] ~= '' then
  local of, phase, place, size, rest = string.match(ARGV[2], '^(%x*) (%l+) (%d+) (%d+) (.*)$')
  at = #phases + 1
  for i, p in ipairs(phases) do if p[1] == phase then at = i end end
  if at > #phases or tonumber(size) > #rest or #place > 20 or #place == 20 and precedes(MAX_CURSOR, place) then return {'place'} end
  if of == server() then cursor, name, last = place, sub(rest, 1, tonumber(size)), sub(rest, tonumber(size) + 1) end
end

local before = count()
while at <= #phases and not spent() do
  cursor, name, last = phases[at][2](cursor, name, last)
  if not cursor then at, cursor, name, last = at + 1, '0', '', '' end
end

local alone = at > #phases and count_alone()
if alone and tonumber(call('HGET', LEASE, 'alone') or 0) ~= alone then plan.hset(LEASE, 'alone', alone) end
local place = at <= #phases and table.concat({server(), phases[at][1], cursor, #name, name .. last}, ' ') or ''
if wrong then return wrong end

plan.write()
for group in pairs(met) do recount_group(group, false) end
for _, group in ipairs(finished) do recount_group(group, true) end
return {'ok', before, count(), counted, place, faults, visited}
