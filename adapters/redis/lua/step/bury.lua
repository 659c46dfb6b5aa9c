#!lua flags=allow-oom
-- Moves queued jobs to the morgue, or only their first payloads.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count, dead, its times,
--   ids, metas and groups
-- ARGV: 1 now or '', 2 only those first pushed before, 3 only those that have failed (1) or are
--   held (2), 4 the group, 5 the failures of those that have none, 6 whether only first payloads (1
--   or 0); then the ids, each followed by its first payload if 6 is 1
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: JOBS, DEAD, clock, read_meta, wake, bounds, plan, packed, items, queue, groups, morgue, condition,
--   named, read_step.

local now, is_about, group, by_hand = clock(ARGV[1]), condition(ARGV[2], ARGV[3]), ARGV[4], ARGV[5]
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, firsts = named(7, ARGV[6] == '1')
local asked = #ids
local queued, buried = read_step(JOBS, ids), read_step(DEAD, ids)
local jobs, dead, bound = queue.load(ids, queued), morgue.load(ids, buried), bounds.new()

-- letter_of returns the dead letter of a job, with the given payloads.
local function letter_of(job, payloads)
  local letter = packed.letter(now)
  letter.failures = job.failures ~= '' and job.failures or by_hand
  letter.group, letter.tags, letter.list = group, job.tags, payloads
  return letter
end

-- bury_first moves the first payload of a job if it is the given one. It reports whether the step
-- is finished with the job, and whether it has moved the payload.
local function bury_first(item, data)
  local part, whole = items.take_first(item, data, bound)
  if not part then return whole, false end
  morgue.store(morgue.add(dead, item.id, letter_of(item.job, part)))
  if whole then queue.remove(item, index) else queue.store_rest(item, now, index) end
  return true, true
end

-- bury moves as much of a job as a bound allows, and reports whether that is all of it.
local function bury(item)
  local id = item.id
  if not dead[id] and items.goes_whole(item) then
    local into = morgue.open(dead, id, letter_of(item.job, {}))
    items.move(item, into)
    morgue.store(into)
    queue.remove(item, index)
    return true
  end

  local part, whole = items.take(item, bound)
  if #part > 0 then morgue.store(morgue.add(dead, id, letter_of(item.job, part))) end
  if whole then queue.remove(item, index)
  elseif #part > 0 then queue.store(item, item.old.place, index) end
  return whole
end

local handled, reached = 0, 0
for i, id in ipairs(ids) do
  local item = jobs[id]
  if item and is_about(item.job) then
    local finished, moved
    if firsts then finished, moved = bury_first(item, firsts[i]) else finished, moved = bury(item), true end
    if not finished then break end
    jobs[id] = nil
    if moved then handled = handled + 1 end
  end
  reached = i
end

groups.finish()
plan.write()
if handled > 0 or reached < asked then wake() end
return {'ok', now, handled, 0, reached}
