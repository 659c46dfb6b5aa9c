#!lua flags=allow-oom
-- Moves queued jobs whole to the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0), 4 error of those that have none; then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}
-- Uses: JOBS, clock, fetch, read_meta, wake, plan, items, queue, morgue,
--   step_ids, failed_ids.

local now, default_error = clock(ARGV[1]), ARGV[4]
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, more = step_ids(5, failed_ids)
local handled, dead = 0, morgue.load(ids)
for id, item in pairs(queue.load(ids, fetch('HMGET', JOBS, ids))) do
  local reason = item.job.error ~= '' and item.job.error or default_error
  morgue.store(morgue.add(dead, id, items.all(item), reason, now))
  queue.remove(item, index)
  handled = handled + 1
end
plan.write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
