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
-- Uses: JOBS, READY, PARKED, CLAIMS, BYID, METAS, WIDE, FIRST, call, sub, byte, char, pack, band,
--   clock, instant, read_meta, wake, bounds, plan, unite_tags, packed, items, queue.

local ARGV = ARGV
call('EXISTS', PARKED, BYID, METAS) -- fails here, not in plan.write(), if another server has one of them
local now, believed, terms = clock(ARGV[1]), ARGV[2], ARGV[3]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
local rule, limit = string.match(terms, '^(%d) (%d+)')
local times, urgent = {}, {} -- when entries are due, if not now, and which merge by earliest
for how, n in string.gmatch(terms, '([@+!])(-?%d+)') do
  times[#times + 1] = how == '@' and tonumber(n) or instant(now + n)
  urgent[#times] = how == '!'
end

-- merge changes the state of a queued job as a push for it does (rules 2).
local function merge(job, coming, by, tags)
  job.first, job.tags = math.min(job.first, now), unite_tags(job.tags, tags)
  if job.retry >= 0 or (by or '0') == '0' then return end
  if by == '1' then job.at = math.min(job.at, coming)
  else job.at = math.max(job.at, math.min(coming, instant(job.first + limit))) end
end

local ids, new = {}, {}
for i = 4, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end

-- Queued jobs may be large. The script reads as many as it may, and leaves the rest of the entries
-- to another call.
local asked, packed_jobs, size = #ids, {}, 0
for i = 1, asked, 16 do
  if size > bounds.most_bytes then
    for k = asked, i, -1 do ids[k] = nil end
    break
  end
  for k, job in ipairs(call('HMGET', JOBS, unpack(ids, i, math.min(i + 15, asked)))) do
    packed_jobs[i + k - 1], size = job, size + (job and #job or 0)
  end
end
local position, merged = {}, {} -- of new jobs, and of all other entries
for n, id in ipairs(ids) do
  if packed_jobs[n] or position[id] then merged[#merged + 1] = n
  else
    position[id] = n
    new[#new + 1] = id
  end
end

-- A job whose id is claimed is parked.
local claimed = {}
if #new > 0 and call('HLEN', CLAIMS) > 0 then
  for _, id in ipairs(new) do claimed[id] = call('HEXISTS', CLAIMS, id) == 1 end
end

local added, superseded = 0, 0
local there = #merged > 0 and queue.load(ids, packed_jobs) or {}
for _, n in ipairs(merged) do
  local id = ids[n]
  local item, first = there[id], position[id]
  if not item then -- the second of an id that was not queued
    item = queue.item(id, packed.decode(ARGV[2 * first + 3], times[first] or now))
    item.job.first = now
    there[id] = item
  end
  local pushed = packed.decode(ARGV[2 * n + 3], now)
  merge(item.job, times[n] or now, urgent[n] and '1' or rule, pushed.tags)
  local more, _, own = items.unite(item, pushed.list)
  added, superseded = added + more, superseded + (own or 0)
end

-- with_first returns the packed job as one that is not due now: FirstPush follows the score.
local function with_first(packed_job)
  local flags = byte(packed_job)
  local head = band(flags, WIDE) > 0 and 9 or 8
  return char(flags + FIRST) .. sub(packed_job, 2, head) .. pack('>I8', now) .. sub(packed_job, head + 1)
end

local early -- whether a job that is stored as it came is due before its first push
local soonest, due = math.huge, string.format('%.0f', now)
for _, id in ipairs(new) do
  local item, n = there[id], position[id]
  local place, at = claimed[id] and PARKED or READY, times[n] or now
  if item then
    queue.store(item, place, index)
    at = item.job.at
  else
    plan.hset(JOBS, id, at == now and ARGV[2 * n + 3] or with_first(ARGV[2 * n + 3]))
    plan.zadd(place, at == now and due or at, id)
    early = early or at < now
    if index then plan.zadd(BYID, 0, id) end
  end
  if at < soonest and place == READY then soonest = at end
end
for _, item in pairs(there) do
  if item.old then
    queue.store(item, item.old.place, index)
    added = added - (item.known or 0)
    if item.old.place == READY and item.job.at < soonest then soonest = item.job.at end
  end
end
local head = soonest < math.huge and call('ZRANGE', READY, 0, 0, 'WITHSCORES') or {}
if early then queue.note_early(now) end
plan.write()
if not paused and soonest < tonumber(head[2] or math.huge) then wake() end
if #merged == 0 and #ids == asked then return now end
return {'met', now, #ids, #new, added, superseded}
