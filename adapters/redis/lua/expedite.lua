#!lua flags=allow-oom
-- Makes queued jobs due.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 jobs to handle if no ids are given, 3 whether ids are
--   given (1 or 0); then the ids
-- Returns {'ok', now, handled, more, reached} or {'unknown'}
-- Uses: READY, PARKED, JOBS, call, clock, precedes, read_meta, wake, plan, queue, step_ids,
--   read_step.

local now = clock(ARGV[1])
local index, paused = read_meta()
if index == nil then return {'unknown'} end

-- latest returns the ids of the last n jobs after now, by (PerformAt, id).
local function latest(n)
  local late = {}
  for _, key in ipairs({READY, PARKED}) do
    local found = call('ZREVRANGEBYSCORE', key, '+inf', '(' .. string.format('%.0f', now), 'WITHSCORES', 'LIMIT', 0, n)
    for i = 1, #found, 2 do late[#late + 1] = {id = found[i], at = tonumber(found[i + 1])} end
  end
  table.sort(late, function(a, b)
    if a.at ~= b.at then return a.at > b.at end
    return precedes(b.id, a.id)
  end)
  local ids = {}
  for i = 1, math.min(n, #late) do ids[i] = late[i].id end
  return ids
end

local ids, more = step_ids(4, latest)
local asked, handled, ready = #ids, 0, false
local packed_jobs = read_step(JOBS, ids)
for _, item in pairs(queue.load(ids, packed_jobs)) do
  if item.job.at > now then
    item.job.at, handled = now, handled + 1
    queue.store(item, item.old.place, false)
    ready = ready or item.old.place == READY
  end
end
if #ids < asked then more = 1 end
plan.write()
if ready and not paused then wake() end
return {'ok', now, handled, more, #ids}
