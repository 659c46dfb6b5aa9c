#!lua
-- Stores entries of one shard, in order, and wakes the shard if it is due earlier. push_plain.lua
-- handles the usual push, and this file any other.
-- KEYS: meta jobs ready claims
-- ARGV: 1 now or '', 2 "shards generation", 3 '' if the rule is keep and all is due now, else
--   "rule limit", behind a ~ if stale entries are dropped, rule 1 for earliest and 2 for debounce and
--   the limit in µs, and, unless all is due now, @instant or +delay of each entry, or !delay of one
--   that merges by earliest; then for each: id, packed job that is due now
-- Returns now if all entries have made jobs, else {'met', now, how many of the first entries it
--   has stored, how many of these have made jobs, how many have added a payload to one, how many
--   were superseded at once, how many were stale},
--   {'unknown'}, {'mismatch', "shards generation"}
-- Uses: base, JOBS, PARKED, BYID, METAS, LEASE, call, sub, clock, read_meta, wake, bounds, plan,
--   packed, pushes, marked.

local ARGV = ARGV
call('EXISTS', PARKED, BYID, METAS) -- fails here, not in plan.write(), if another server has one of them
local now, believed, terms = clock(ARGV[1]), ARGV[2], ARGV[3]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end

local drops = sub(terms, 1, 1) == '~'
if drops then terms = sub(terms, 2) end
local rule, limit = string.match(terms, '^(%d) (%d+)')
local ids, coming, times, urgent = {}, {}, {}, {}
pushes.add_times(terms, now, times, urgent)
for i = 4, #ARGV, 2 do ids[#ids + 1], coming[#coming + 1] = ARGV[i], ARGV[i + 1] end

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

-- drop_stale removes the entries that are stale from the lists. It returns how many of them there
-- are.
local function drop_stale()
  local PAST, n, kept, fields = base .. 'o', #ids, 0, {}
  call('EXISTS', PAST, LEASE)
  for i, id in ipairs(ids) do fields[2 * i - 1], fields[2 * i] = id, id .. '\0' end
  local records = {}
  for i = 1, 2 * n, 1000 do
    local last = math.min(i + 999, 2 * n)
    for k, record in ipairs(call('HMGET', PAST, unpack(fields, i, last))) do records[i + k - 1] = record end
  end

  for i = 1, n do
    local score, stale = packed.decode(coming[i], now).list[1].score, false
    for k = 2 * i - 1, 2 * i do
      stale = stale or score <= (marked(records[k]) or -math.huge)
    end
    if not stale then
      kept = kept + 1
      ids[kept], coming[kept], times[kept], urgent[kept] = ids[i], coming[i], times[i], urgent[i]
    end
  end
  for i = n, kept + 1, -1 do ids[i], coming[i], times[i], urgent[i] = nil, nil, nil, nil end
  return n - kept
end

local taken, stale = #ids, drops and drop_stale() or 0
local new, merged, added, superseded, earlier = pushes.store(
  {ids = ids, jobs = coming, times = times, urgent = urgent, rule = rule, limit = limit}, queued, now, index)

plan.write()
if stale > 0 then call('HINCRBY', LEASE, 'stale', stale) end
if not paused and earlier then wake() end
if merged == 0 and #ids == asked then return now end
return {'met', now, taken, new, added, superseded, stale}
