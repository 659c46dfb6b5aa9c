#!lua
-- Stores entries of one shard, in order, and wakes the shard if it is due earlier. push_plain.lua
-- handles the usual push, and this file any other.
-- KEYS: meta jobs ready claims
-- ARGV: 1 now or '', 2 "shards generation", 3 '' if the rule is keep and all is due now, else
--   "rule limit", behind a ~ if stale entries are dropped and a # if entries are accepted once, rule 1
--   for earliest and 2 for debounce and the limit in µs, and, unless all is due now, @instant or +delay
--   of each entry, or !delay of one that merges by earliest; then for each: id, packed job that is due
--   now; then, with #, for each in one text: its key (16 bytes), and for how long it is accepted once
--   in µs (8 bytes), 0 for one that is always accepted
-- Returns now if all entries have made jobs, else {'met', now, how many of the first entries it
--   has stored, how many of these have made jobs, how many have added a payload to one, how many
--   were superseded at once, how many were stale, how many were repeats},
--   {'unknown'}, {'mismatch', "shards generation"}
-- Uses: base, JOBS, PARKED, BYID, METAS, LEASE, call, sub, clock, read_meta, wake, bounds, plan,
--   packed, pushes, marked, instant.
--
-- The sorted set on has the keys of the entries that were accepted once, by the end of their time
-- (docs/rules.md 17). It expires an hour after the last of them has ended, in a shard that nobody
-- pushes to.

local ARGV = ARGV
call('EXISTS', PARKED, BYID, METAS) -- fails here, not in plan.write(), if another server has one of them
local now, believed, terms = clock(ARGV[1]), ARGV[2], ARGV[3]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end

local drops = sub(terms, 1, 1) == '~'
if drops then terms = sub(terms, 2) end
local once = sub(terms, 1, 1) == '#' and ARGV[#ARGV]
if once then terms = sub(terms, 2) end
local rule, limit = string.match(terms, '^(%d) (%d+)')
local ids, coming, times, urgent = {}, {}, {}, {}
pushes.add_times(terms, now, times, urgent)
for i = 4, once and #ARGV - 1 or #ARGV, 2 do ids[#ids + 1], coming[#coming + 1] = ARGV[i], ARGV[i + 1] end

-- Queued jobs may be large. The script reads as many as it may, and leaves the rest of the entries
-- to another call.
local asked, queued, size = #ids, {}, 0
for i = 1, asked, 16 do
  if size > bounds.most_bytes then
    for k = asked, i, -1 do ids[k] = nil end
    break
  end
  for k, job in ipairs(call('HMGET', JOBS, unpack(ids, i, math.min(i + 15, asked)))) do
    queued[ids[i + k - 1]], size = job, size + (job and #job or 0)
  end
end

-- stale_ones returns which of the entries are stale.
local function stale_ones()
  local PAST, n, records, fields, stale = base .. 'o', #ids, {}, {}, {}
  call('EXISTS', PAST, LEASE)
  for i, id in ipairs(ids) do fields[2 * i - 1], fields[2 * i] = id, id .. '\0' end
  for i = 1, 2 * n, 1000 do
    for k, record in ipairs(call('HMGET', PAST, unpack(fields, i, math.min(i + 999, 2 * n)))) do records[i + k - 1] = record end
  end

  for i = 1, n do
    local score = packed.decode(coming[i], now).list[1].score
    for k = 2 * i - 1, 2 * i do stale[i] = stale[i] or score <= (marked(records[k]) or -math.huge) end
  end
  return stale
end

-- repeats returns which of the other entries are repeats, and what is to be remembered of the others:
-- the ends of their times and their keys in turn, and the longest time.
local ONCE = base .. 'on'
local function repeats(stale)
  local KEY, SIZE = 16, 24
  call('EXISTS', ONCE, LEASE)
  local keys, times, at = {}, {}, {} -- at has the entry of each
  for i = 1, #ids do
    local from = SIZE * (i - 1)
    local time = struct.unpack('>I8', once, from + KEY + 1)
    if time > 0 and not stale[i] then
      keys[#keys + 1], times[#keys + 1], at[#keys + 1] = sub(once, from + 1, from + KEY), time, i
    end
  end
  local ends = #keys > 0 and call('ZMSCORE', ONCE, unpack(keys)) or {}

  local repeated, remembered, seen, longest = {}, {}, {}, 0
  for k, key in ipairs(keys) do
    if seen[key] or tonumber(ends[k] or 0) > now then repeated[at[k]] = true
    else
      remembered[#remembered + 1] = string.format('%.0f', instant(now + times[k]))
      remembered[#remembered + 1] = key
      longest = math.max(longest, times[k])
    end
    seen[key] = true
  end
  return repeated, remembered, longest
end

-- remember stores what is to be remembered, and removes what has ended.
local function remember(remembered, longest)
  local MOST_REMOVED, HOUR = 500, 3600000 -- the first is core.MaxOnceRemoved
  if #remembered > 0 then
    call('ZADD', ONCE, unpack(remembered))
    local left = string.format('%.0f', math.ceil(longest / 1000) + HOUR)
    call('PEXPIRE', ONCE, left, 'NX')
    call('PEXPIRE', ONCE, left, 'GT')
  end
  local ended = call('ZCOUNT', ONCE, '-inf', string.format('%.0f', now))
  if ended > 0 then call('ZREMRANGEBYRANK', ONCE, 0, math.min(ended, MOST_REMOVED) - 1) end
end

-- drop removes entries from the lists, and returns how many.
local function drop(which)
  local n, kept = #ids, 0
  for i = 1, n do
    if not which[i] then
      kept = kept + 1
      ids[kept], coming[kept], times[kept], urgent[kept] = ids[i], coming[i], times[i], urgent[i]
    end
  end
  for i = n, kept + 1, -1 do ids[i], coming[i], times[i], urgent[i] = nil, nil, nil, nil end
  return n - kept
end

local taken, stale, repeated, remembered, longest = #ids, 0, 0, nil, nil
if drops or once then
  local gone, again = drops and stale_ones() or {}, {}
  if once then again, remembered, longest = repeats(gone) end
  for i = 1, taken do
    if gone[i] then stale = stale + 1 elseif again[i] then repeated, gone[i] = repeated + 1, true end
  end
  drop(gone)
end

local new, merged, added, superseded, earlier = pushes.store(
  {ids = ids, jobs = coming, times = times, urgent = urgent, rule = rule, limit = limit}, queued, now, index)

plan.write()
if remembered then remember(remembered, longest) end
if stale > 0 then call('HINCRBY', LEASE, 'stale', stale) end
if repeated > 0 then call('HINCRBY', LEASE, 'repeated', repeated) end
if not paused and earlier then wake() end
if merged == 0 and #ids == asked then return now end
return {'met', now, taken, new, added, superseded, stale, repeated}
