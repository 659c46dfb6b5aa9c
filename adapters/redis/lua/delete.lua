#!lua flags=allow-oom
-- Removes queued jobs.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}

local E = entities()
local now, most, given = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local meta = call('HMGET', META, 'shards', 'index')
if not meta[1] then return {'unknown'} end

local ids, more = {}, 0
if given then for i = 4, #ARGV do ids[i - 3] = ARGV[i] end
else
  ids = call('ZRANGE', RTIME, 0, most - 1)
  if call('ZCARD', RTIME) > most then more = 1 end
end
local handled = 0
for _, e in pairs(E.load(ids, fetch('HMGET', JOBS, ids))) do
  E.remove(e, meta[2] == '1')
  handled = handled + 1
end
write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
