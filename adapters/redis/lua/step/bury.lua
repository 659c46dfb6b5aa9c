#!lua flags=allow-oom
-- Moves queued jobs to the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count, dead, its times,
--   ids, metas and groups
-- ARGV: 1 now or '', 2 only those first pushed before, 3 only those that have failed (1 or 0),
--   4 the group, and the error of those that have none; then the ids
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: JOBS, DEAD, clock, read_meta, wake, bounds, plan, items, queue, groups, morgue, condition,
--   read_step.

local now, is_about, group = clock(ARGV[1]), condition(ARGV[2], ARGV[3]), ARGV[4]
local index = read_meta()
if index == nil then return {'unknown'} end

local ids = {unpack(ARGV, 5)}
local asked = #ids
local queued, buried = read_step(JOBS, ids), read_step(DEAD, ids)
local jobs, dead, bound = queue.load(ids, queued), morgue.load(ids, buried), bounds.new()

-- bury moves as much of a job as a bound allows, and reports whether that is all of it.
local function bury(item)
  local id, reason = item.id, item.job.error ~= '' and item.job.error or group
  if not dead[id] and items.goes_whole(item) then
    local letter = morgue.open(dead, id, reason, group, now)
    items.move(item, letter)
    morgue.store(letter)
    queue.remove(item, index)
    return true
  end
  local part, whole = items.take(item, bound)
  if #part > 0 then morgue.store(morgue.add(dead, id, part, reason, group, now)) end
  if whole then queue.remove(item, index)
  elseif #part > 0 then queue.store(item, item.old.place, index) end
  return whole
end

local handled, reached = 0, 0
for i, id in ipairs(ids) do
  local item = jobs[id]
  if item and is_about(item.job) then
    if not bury(item) then break end
    jobs[id], handled = nil, handled + 1
  end
  reached = i
end
groups.finish()
plan.write()
if handled > 0 or reached < asked then wake() end
return {'ok', now, handled, 0, reached}
