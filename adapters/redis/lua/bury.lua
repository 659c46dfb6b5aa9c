#!lua flags=allow-oom
-- Moves queued jobs whole to the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0), 4 error of those that have none; then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}

local E = entities()
local now, most, given, reason = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local meta = call('HMGET', META, 'shards', 'index')
if not meta[1] then return {'unknown'} end

local ids, more = {}, 0
if given then for i = 5, #ARGV do ids[i - 4] = ARGV[i] end
else
  ids = call('ZRANGE', RTIME, 0, most - 1)
  if call('ZCARD', RTIME) > most then more = 1 end
end
local handled, deads = 0, E.load_dead(ids)
for id, e in pairs(E.load(ids, fetch('HMGET', JOBS, ids))) do
  E.bury(deads, id, (E.first(e, LIMIT)), e.job.error ~= '' and e.job.error or reason, now)
  E.keep_dead(deads[id])
  E.remove(e, meta[2] == '1')
  handled = handled + 1
end
write()
if handled > 0 then wake() end
return {'ok', now, handled, more}
