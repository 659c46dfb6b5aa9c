#!lua
-- Changes schedules of one shard, in order, with the pushes of their entries, and wakes the shard
-- if it is due earlier. All changes are planned together and then written.
-- KEYS: meta jobs ready claims schedules ticks named
-- ARGV: 1 now or '', 2 "shards generation", 3 whether the changes fire ticks (1 or 0); then for
--   each change: id, name, the revision that it replaces, or -1 for any, the record or '' for a
--   removal, the record's tick or '', the record if the id is busy or '', its tick or '', when the
--   entries are due, as in push.lua, how many they are, each packed as a job that is due now
-- Returns {'ok', now, when the next schedule is due or -1, how many entries it has pushed, how many
--   of them have made jobs, how many have added a payload to one, how many were superseded at once,
--   the ports.ScheduleResult of each change that it has handled},
--   {'unknown'}, {'mismatch', "shards generation"}
-- Uses: JOBS, PARKED, CLAIMS, BYID, METAS, SCHEDULES, TICKS, call, clock, read_meta, wake, bounds,
--   plan, readable, pushes, schedules.

local ARGV = ARGV
call('EXISTS', PARKED, BYID, METAS) -- fails here, not in plan.write(), if another server has one of them
local now, believed, firing = clock(ARGV[1]), ARGV[2], ARGV[3] == '1'
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end

local CHANGED, BUSY, REFUSED, PAUSED, ANY = 0, 1, 2, 3, -1 -- of package ports

-- Jobs and records may be large. The script reads each job once, and leaves the rest of the changes
-- to another call once it has read enough.
local size, queued = 0, {}
local function read_job(id)
  if queued[id] ~= nil then return end
  queued[id] = call('HGET', JOBS, id)
  size = size + #(queued[id] or '')
end

local e = {ids = {}, jobs = {}, times = {}, urgent = {}}
local pushed = {}
local function is_busy(id) return pushed[id] or call('HEXISTS', JOBS, id) == 1 or call('HEXISTS', CLAIMS, id) == 1 end

local function push(id, terms, from, count)
  if count == 0 then return end
  read_job(id)
  pushes.add_times(terms, now, e.times, e.urgent)
  for i = from, from + count - 1 do e.ids[#e.ids + 1], e.jobs[#e.jobs + 1] = id, ARGV[i] end
  pushed[id] = true
end

local soonest, changed, replaced = math.huge, {}, 0 -- the next tick of changed schedules, and their fields
local function note(field, tick)
  changed[field], replaced = true, replaced + 1
  if tick ~= '' then soonest = math.min(soonest, tonumber(tick)) end
end

-- apply plans a change whose entries begin at from, and returns its result.
local function apply(id, name, revision, record, tick, busy, busy_tick, terms, count, from)
  local field = id .. '\0' .. name
  local stored = call('HGET', SCHEDULES, field)
  local had = stored and readable('s', field, schedules.decode, stored, field).revision or 0
  size = size + #(stored or '')
  if had ~= revision and not (stored and revision == ANY) then return REFUSED end

  if record == '' then
    schedules.remove(field)
    note(field, '')
    return CHANGED
  end
  if busy ~= '' and is_busy(id) then
    schedules.store(field, busy, busy_tick)
    note(field, busy_tick)
    return BUSY
  end
  schedules.store(field, record, tick)
  note(field, tick)
  push(id, terms, from, count)
  return CHANGED
end

local results, at = {}, 4
while at <= #ARGV and (size <= bounds.most_bytes or #results == 0) do
  local id, name, revision, record, tick, busy, busy_tick, terms, count = unpack(ARGV, at, at + 8)
  results[#results + 1] = paused and firing and PAUSED
    or apply(id, name, tonumber(revision), record, tick, busy, busy_tick, terms, tonumber(count), at + 9)
  at = at + 9 + count
end

-- One of the first ticks is that of a schedule that does not change, if there is one.
local first = paused and {} or call('ZRANGE', TICKS, 0, replaced, 'WITHSCORES')
for i = 1, #first, 2 do
  if not changed[first[i]] then
    soonest = math.min(soonest, tonumber(first[i + 1]))
    break
  end
end

local new, _, added, superseded, earlier = 0, 0, 0, 0, false
if #e.ids > 0 then new, _, added, superseded, earlier = pushes.store(e, queued, now, index) end

plan.write()
if not paused and earlier then wake() end
if paused or soonest == math.huge then soonest = -1 end
return {'ok', now, soonest, #e.ids, new, added, superseded, unpack(results)}
