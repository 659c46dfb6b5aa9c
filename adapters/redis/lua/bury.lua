#!lua flags=allow-oom
-- Moves queued jobs whole to the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0), 4 error of those that have none; then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}

local now, reason = clock(ARGV[1]), ARGV[4]
local index = queue()
if index == nil then return {'unknown'} end

local ids, more = chosen(5, failed)
local handled, deads = 0, load_dead(ids)
for id, e in pairs(load(ids, fetch('HMGET', JOBS, ids))) do
  bury(deads, id, (first(e, LIMIT)), e.job.error ~= '' and e.job.error or reason, now)
  keep_dead(deads[id])
  remove(e, index)
  handled = handled + 1
end
write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
