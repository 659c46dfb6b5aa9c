#!lua flags=allow-oom
-- Makes queued jobs due, without their slots. Held jobs become fresh.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 only those first pushed before, 3 only those that have failed (1) or are
--   held (2); then the ids
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: READY, JOBS, clock, read_meta, wake, plan, queue, condition, read_step.

local now, is_about = clock(ARGV[1]), condition(ARGV[2], ARGV[3])
local index, paused = read_meta()
if index == nil then return {'unknown'} end

local ids = {unpack(ARGV, 4)}
local packed_jobs, handled, ready = read_step(JOBS, ids), 0, false

for _, item in pairs(queue.load(ids, packed_jobs)) do
  if item.job.at > now and is_about(item.job) then
    if queue.is_held(item.job) then item.job.retry, item.job.recoveries = -1, 0 end
    item.job.at, item.job.slot, handled = now, '', handled + 1
    queue.store(item, item.old.place, false)
    ready = ready or item.old.place == READY
  end
end

plan.write()
if ready and not paused then wake() end
return {'ok', now, handled, 0, #ids}
