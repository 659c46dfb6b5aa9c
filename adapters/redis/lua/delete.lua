#!lua flags=allow-oom
-- Removes queued jobs.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}

local now = clock(ARGV[1])
local index = queue()
if index == nil then return {'unknown'} end

local ids, more = chosen(4, failed)
local handled = 0
for _, e in pairs(load(ids, fetch('HMGET', JOBS, ids))) do
  remove(e, index)
  handled = handled + 1
end
write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
