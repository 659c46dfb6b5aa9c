#!lua flags=allow-oom
-- Removes queued jobs.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}
-- Uses: JOBS, clock, fetch, read_meta, wake, plan, queue, step_ids, failed_ids.

local now = clock(ARGV[1])
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, more = step_ids(4, failed_ids)
local handled = 0
for _, item in pairs(queue.load(ids, fetch('HMGET', JOBS, ids))) do
  queue.remove(item, index)
  handled = handled + 1
end
plan.write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
