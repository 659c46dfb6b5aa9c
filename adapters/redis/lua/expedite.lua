#!lua flags=allow-oom
-- Makes queued jobs due.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more} or {'unknown'}

local E = entities()
local now, most, given = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local meta = call('HMGET', META, 'shards', 'paused')
if not meta[1] then return {'unknown'} end

-- latest is the ids of the last jobs after now by (PerformAt, id), one more
-- than asked for.
local function latest()
  local late = {}
  for _, key in ipairs({READY, PARKED}) do
    local found = call('ZREVRANGEBYSCORE', key, '+inf', '(' .. string.format('%.0f', now), 'WITHSCORES', 'LIMIT', 0, most + 1)
    for i = 1, #found, 2 do late[#late + 1] = {id = found[i], at = tonumber(found[i + 1])} end
  end
  table.sort(late, function(a, b)
    if a.at ~= b.at then return a.at > b.at end
    return precedes(b.id, a.id)
  end)
  local ids = {}
  for i, job in ipairs(late) do ids[i] = job.id end
  return ids
end

local ids, more = {}, 0
if given then for i = 4, #ARGV do ids[i - 3] = ARGV[i] end
else
  ids = latest()
  if #ids > most then more = 1 end
  for i = #ids, most + 1, -1 do ids[i] = nil end
end
local handled, ready = 0, false
for _, e in pairs(E.load(ids, fetch('HMGET', JOBS, ids))) do
  if e.job.at > now then
    e.job.at, handled = now, handled + 1
    E.enqueue(e, e.old.place, false)
    ready = ready or e.old.place == READY
  end
end
write()
if ready and meta[2] ~= '1' then wake() end
return {'ok', now, handled, more}
