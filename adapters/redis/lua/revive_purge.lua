#!lua
-- Takes payloads out of the morgue: Revive puts them back into the queue, Purge
-- discards them.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 revive (1 or 0), 3 dead letters to handle if none are given,
--   4 only those changed before, 5 whether dead letters are given (1 or 0); then for
--   each: id, how many payloads or -1 for all, and these
-- Returns {'ok', now, handled, more} or {'unknown'}
-- Uses: JOBS, READY, PARKED, CLAIMS, DTIME, call, clock, fetch, read_meta, wake, plan, items, queue,
--   morgue.

local now, revive, most, before, given = clock(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1'
local index, paused = read_meta()
if index == nil then return {'unknown'} end

-- Which payloads of which dead letters are taken: names is the payloads, nil for all.
local refs, ids, seen, more = {}, {}, {}, 0
local function refer(id, names)
  refs[#refs + 1] = {id = id, names = names}
  if not seen[id] then seen[id] = true; ids[#ids + 1] = id end
end
if given then
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
  local found = call('ZRANGEBYSCORE', DTIME, '-inf', '(' .. before, 'LIMIT', 0, most + 1)
  if #found > most then more, found[#found] = 1, nil end
  for _, id in ipairs(found) do refer(id) end
end

local dead = morgue.load(ids)
local jobs = revive and queue.load(ids, fetch('HMGET', JOBS, ids)) or {}

-- divide returns the payloads of a dead letter that are named, and those that stay.
local function divide(item, names)
  local taken, left = {}, {}
  for _, p in ipairs(item.left or items.all(item)) do
    if not names or names[p.data] then taken[#taken + 1] = p else left[#left + 1] = p end
  end
  return taken, left
end

local function requeue(id, payloads)
  local item = jobs[id]
  if not item then
    item = queue.item(id, {at = now, first = now, retry = -1, recoveries = 0, error = '', list = {}, many = false, tagged = false})
    jobs[id] = item
  end
  item.job.at, item.job.retry, item.job.error, item.changed = now, -1, '', true
  item.job.first = math.min(item.job.first, now)
  items.unite(item, payloads)
end

local handled = 0
for _, ref in ipairs(refs) do
  local item = dead[ref.id]
  if item then
    local taken, left = divide(item, ref.names)
    if #taken > 0 then
      handled, item.left, item.taken = handled + 1, left, item.taken or {}
      for _, p in ipairs(taken) do item.taken[#item.taken + 1] = p end
      if revive then requeue(ref.id, taken) end
    end
  end
end
for _, item in pairs(dead) do
  if item.left and #item.left == 0 then morgue.remove(item)
  elseif item.left then
    if not item.job.many then item.job.list = item.left end
    morgue.store(item)
  end
end
local ready = false
for id, item in pairs(jobs) do
  if item.changed then
    local place = item.old and item.old.place or (call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY)
    queue.store(item, place, index)
    ready = ready or place == READY
  end
end
plan.write()
if ready and not paused then wake() end
return {'ok', now, handled, more}
