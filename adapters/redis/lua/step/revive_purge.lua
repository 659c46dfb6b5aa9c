#!lua
-- Removes payloads from the morgue: Revive puts them back into the queue, Purge discards them.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count, dead, its times,
--   ids, metas and groups
-- ARGV: 1 now or '', 2 revive (1 or 0), 3 dead letters to handle if none are given, 4 only those
--   changed before, 0 for any that are given, 5 only those of a group, or '', 6 whether dead
--   letters are given (1 or 0), 7 how many of all to keep, 8 1 to leave stale ones alone, 2 to remove
--   the marks and records of the ids of stale ones, else 0; then for each: id, how many payloads or
--   -1 for all, and these
-- Returns {'ok', now, handled, more, reached, stale ones that stay} or {'unknown'}
-- Uses: base, JOBS, READY, PARKED, CLAIMS, DEAD, DTIME, LEASE, call, pack, parse, clock, fetch, read_meta, wake,
--   bounds, plan, marked, missing, unite_tags, packed, items, queue, groups, morgue, read_step.

local now, revive, most, before, group, given = clock(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6] == '1'
local keep, fresh, unmark = tonumber(ARGV[7]), ARGV[8] == '1', ARGV[8] == '2'
local index, paused = read_meta()
if index == nil then return {'unknown'} end

-- The payloads to take from each dead letter: for each id a list of payloads, or false for all.
local ids, named, more = {}, {}, 0
if given then
  local i = 9
  while ARGV[i] do
    local n, names = tonumber(ARGV[i + 1]), false
    if n >= 0 then
      names = {}
      for k = i + 2, i + 1 + n do names[#names + 1] = ARGV[k] end
    end
    ids[#ids + 1], named[#named + 1] = ARGV[i], names
    i = i + 2 + math.max(n, 0)
  end
else
  local list, read = group == '' and DTIME or groups.list(group), most + 1
  if keep > 0 then read = math.min(read, math.max(0, call('HLEN', DEAD) - keep)) end
  ids = call('ZRANGEBYSCORE', list, '-inf', '(' .. ARGV[4], 'LIMIT', 0, read)
  if #ids > most then more, ids[#ids] = 1, nil end
end

local asked = #ids
local buried, queued = read_step(DEAD, ids), revive and read_step(JOBS, ids) or {}
local dead, jobs, bound, ready = morgue.load(ids, buried), queue.load(ids, queued), bounds.new(), false

local marks, PAST, PTIME, RESULTS = {}, base .. 'o', base .. 'ot', base .. 'or'
if fresh or unmark then
  call('EXISTS', PAST, PTIME, RESULTS, LEASE)
  local fields = {}
  for i, id in ipairs(ids) do fields[2 * i - 1], fields[2 * i] = id, id .. '\0' end
  for i, record in ipairs(fetch('HMGET', PAST, fields)) do
    local id, score = ids[math.ceil(i / 2)], marked(record)
    marks[id] = math.max(marks[id] or -math.huge, score or -math.huge)
  end
end

-- is_stale reports whether a named payload of a dead letter is stale, or any of it.
local function is_stale(item, names)
  if not fresh and not unmark then return false end
  local low = items.lowest(item, names)
  return low ~= nil and low.score <= (marks[item.id] or -math.huge)
end

-- requeue returns the queued job of a dead letter's id, in the state for its payloads to be merged
-- into it.
local function requeue(letter)
  local id = letter.id
  local item = jobs[id]
  if not item then
    item = queue.item(id, packed.fresh(now))
    jobs[id] = item
  end

  if not queue.is_held(item.job) then item.job.at, item.job.retry, item.job.slot, item.job.failures = now, -1, '', '' end
  item.changed = true
  item.job.first, item.job.tags = math.min(item.job.first, now), unite_tags(item.job.tags, letter.job.tags)
  return item
end

-- is_meant reports whether a dead letter has not changed since the step's instant.
local function is_meant(item) return not given or before == 0 or item.old.at < before end

-- handle takes payloads of a dead letter, as a bound allows. It returns whether it has taken some,
-- and whether these were all.
local function handle(item, names)
  if not names and not (revive and jobs[item.id]) and items.goes_whole(item) then
    if revive then items.move(item, requeue(item)) end
    item.changed, item.whole = true, true
    return true, true
  end

  local part, whole
  if names then part, whole = items.take_named(item, names, bound) else part, whole = items.take(item, bound) end
  if #part == 0 then return false, whole end
  if revive then items.unite(requeue(item), part) end
  item.changed = true
  return true, whole
end

local handled, reached, left, unmarked = 0, 0, 0, {} -- left is how many stale ones stay
for i, id in ipairs(ids) do
  local item, names = dead[id], named[i]
  if not item and not given then missing('d', id, 'its record is lost') end
  if item and item.changed and not item.whole and not names then break end -- the rest is left to another step
  if item and not item.whole and is_meant(item) then
    local stale, some, whole = is_stale(item, names), false, true
    if stale and fresh then left = left + 1 else some, whole = handle(item, names) end
    if stale and unmark and some then unmarked[#unmarked + 1] = id end
    if not whole then break end
    if some then handled = handled + 1 end
  end
  reached = i
end

if reached < asked then more = 1 end
for _, item in pairs(dead) do
  if item.changed and (item.whole or items.count(item) == 0) then morgue.remove(item)
  elseif item.changed then morgue.store(item) end
end

for id, item in pairs(jobs) do
  if item.changed then
    local place = item.old and item.old.place or (call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY)
    queue.store(item, place, index)
    ready = ready or place == READY
  end
end

groups.finish()
plan.write()
if #unmarked > 0 then
  local fields, size = {}, 0
  for i, id in ipairs(unmarked) do fields[2 * i - 1], fields[2 * i] = id, id .. '\0' end
  for _, record in ipairs(fetch('HMGET', PAST, fields)) do size = size + (record and parse('>I4', record, 9) or 0) end
  for _, field in ipairs(fields) do
    call('HDEL', PAST, field)
    call('ZREM', PTIME, field)
    call('HDEL', RESULTS, field)
  end
  local kept = call('HGET', LEASE, 'past')
  if kept and size > 0 then
    local sum, age = parse('>I8I8', kept)
    call('HSET', LEASE, 'past', pack('>I8I8', math.max(0, sum - size), age))
  end
end
if ready and not paused then wake() end
return {'ok', now, handled, more, reached, left}
