#!lua flags=allow-oom
-- Removes queued jobs.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 only those first pushed before, 3 only those that have failed (1 or 0);
--   then the ids
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: JOBS, clock, read_meta, wake, bounds, plan, items, queue, condition, read_step.

local now, is_about = clock(ARGV[1]), condition(ARGV[2], ARGV[3])
local index = read_meta()
if index == nil then return {'unknown'} end

local ids = {unpack(ARGV, 4)}
local asked, bound = #ids, bounds.new()
local packed_jobs = read_step(JOBS, ids)
local jobs, handled, reached = queue.load(ids, packed_jobs), 0, 0
for i, id in ipairs(ids) do
  local item = jobs[id]
  if item and not is_about(item.job) then item = nil end
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
plan.write()
if handled > 0 or reached < asked then wake() end
return {'ok', now, handled, 0, reached}
