#!lua
-- Takes payloads out of the morgue: Revive puts them back into the queue, Purge
-- lets them go.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 revive (1 or 0), 3 entries to handle if none are given,
--   4 only those changed before, 5 whether entries are given (1 or 0); then for
--   each entry: id, how many payloads or -1 for all, and these
-- Returns {'ok', now, handled, more} or {'unknown'}

local now, revive, most = clock(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3])
local index, paused = queue()
if index == nil then return {'unknown'} end

local refs, ids, seen, more = {}, {}, {}, 0
local function refer(id, names)
  refs[#refs + 1] = {id = id, names = names}
  if not seen[id] then seen[id] = true; ids[#ids + 1] = id end
end
if ARGV[5] == '1' then
  local i = 6
  while ARGV[i] do
    local id, n, names = ARGV[i], tonumber(ARGV[i + 1]), nil
    if n >= 0 then
      names = {}
      for k = i + 2, i + 1 + n do names[ARGV[k]] = true end
    end
    refer(id, names)
    i = i + 2 + math.max(n, 0)
  end
else
  local found = call('ZRANGEBYSCORE', DTIME, '-inf', '(' .. ARGV[4], 'LIMIT', 0, most + 1)
  if #found > most then more, found[#found] = 1, nil end
  for _, id in ipairs(found) do refer(id) end
end

local deads = load_dead(ids)
local queued = revive and load(ids, fetch('HMGET', JOBS, ids)) or {}

-- part parts the payloads that a reference names from those that stay.
local function part(e, names)
  local taken, left = {}, {}
  for _, p in ipairs(e.left or first(e, LIMIT)) do
    if not names or names[p.data] then taken[#taken + 1] = p else left[#left + 1] = p end
  end
  return taken, left
end

local function requeue(id, payloads)
  local e = queued[id]
  if not e then
    e = {id = id, area = living, job = {at = now, first = now, retry = -1, recoveries = 0, error = '',
      list = {}, many = false, tagged = false}}
    queued[id] = e
  end
  e.job.at, e.job.retry, e.job.error, e.changed = now, -1, '', true
  e.job.first = math.min(e.job.first, now)
  unite(e, payloads)
end

local handled = 0
for _, ref in ipairs(refs) do
  local e = deads[ref.id]
  if e then
    local taken, left = part(e, ref.names)
    if #taken > 0 then
      handled, e.left, e.taken = handled + 1, left, e.taken or {}
      for _, p in ipairs(taken) do e.taken[#e.taken + 1] = p end
      if revive then requeue(ref.id, taken) end
    end
  end
end
for _, e in pairs(deads) do
  if e.left and #e.left == 0 then remove_dead(e)
  elseif e.left then
    if not e.job.many then e.job.list = e.left end
    keep(e)
  end
end
local ready = false
for id, e in pairs(queued) do
  if e.changed then
    local place = e.old and e.old.place or (call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY)
    enqueue(e, place, index)
    ready = ready or place == READY
  end
end
write()
if ready and not paused then wake() end
return {'ok', now, handled, more}
