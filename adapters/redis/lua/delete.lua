#!lua flags=allow-oom
-- Removes queued jobs.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more, reached} or {'unknown'}
-- Uses: JOBS, clock, read_meta, wake, bounds, plan, items, queue, step_ids, failed_ids, read_step.

local now = clock(ARGV[1])
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, more = step_ids(4, failed_ids)
local asked, bound = #ids, bounds.new()
local packed_jobs = read_step(JOBS, ids)
local jobs, handled, reached = queue.load(ids, packed_jobs), 0, 0
for i, id in ipairs(ids) do
  local item = jobs[id]
  if item and not items.goes_whole(item) then
    local part, whole = items.take(item, bound)
    if not whole then
      if #part > 0 then queue.store(item, item.old.place, index) end
      break
    end
  end
  if item then
    queue.remove(item, index)
    jobs[id], handled = nil, handled + 1
  end
  reached = i
end
if reached < asked then more = 1 end
plan.write()
if handled > 0 or reached < asked then wake() end
return {'ok', now, handled, more, reached}
