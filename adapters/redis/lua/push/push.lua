#!lua
-- Stores entries of one shard, in order, and wakes the shard if it is due earlier. push_plain.lua
-- handles the usual push, and this file any other.
-- KEYS: meta jobs ready claims
-- ARGV: 1 now or '', 2 "shards generation", 3 '' if the rule is keep and all is due now, else
--   "rule limit", rule 1 for earliest and 2 for debounce and the limit in µs, and, unless all is
--   due now, @instant or +delay of each entry, or !delay of one that merges by earliest; then for
--   each: id, packed job that is due now
-- Returns now if all entries have made jobs, else {'met', now, how many of the first entries it
--   has stored, how many of these have made jobs, how many have added a payload to one, how many
--   were superseded at once},
--   {'unknown'}, {'mismatch', "shards generation"}
-- Uses: JOBS, PARKED, BYID, METAS, call, clock, read_meta, wake, bounds, plan, pushes.

local ARGV = ARGV
call('EXISTS', PARKED, BYID, METAS) -- fails here, not in plan.write(), if another server has one of them
local now, believed, terms = clock(ARGV[1]), ARGV[2], ARGV[3]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end

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

local new, merged, added, superseded, earlier = pushes.store(
  {ids = ids, jobs = coming, times = times, urgent = urgent, rule = rule, limit = limit}, queued, now, index)

plan.write()
if not paused and earlier then wake() end
if merged == 0 and #ids == asked then return now end
return {'met', now, #ids, new, added, superseded}
