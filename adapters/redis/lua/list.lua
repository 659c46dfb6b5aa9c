#!lua flags=no-writes
-- Lists queued jobs or dead letters of a shard from a cursor.
-- KEYS: all of the shard
-- ARGV: 1 order (time id retries-time retries-id retries-count dead-time dead-id),
--   2 descending (1 or 0), 3 key of the cursor, 4 its id, or '' for the start,
--   5 entries to list, 6 payloads of each
-- Returns {'ok', whether there are more (1 or 0), id, key, PerformAt, count, packed job, ...};
--   it lists fewer entries if they are large
-- Uses: JOBS, READY, PARKED, BYID, RTIME, RID, RCOUNT, DEAD, DTIME, DID, call, floor, precedes,
--   bounds, packed, items, queue, morgue, read_step.

local order, descending, after, most, most_payloads = ARGV[1], ARGV[2] == '1', ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local from = tonumber(ARGV[3])
local dead = order == 'dead-time' or order == 'dead-id'

-- place returns how many members of a sorted set come before (from, after), and the
-- member at that rank: a search, since scores may tie.
local function place(key)
  local low, high = call('ZCOUNT', key, '-inf', '(' .. ARGV[3]), call('ZCOUNT', key, '-inf', ARGV[3])
  while low < high do
    local middle = floor((low + high) / 2)
    if precedes(call('ZRANGE', key, middle, middle)[1], after) then low = middle + 1 else high = middle end
  end
  return low, call('ZRANGE', key, low, low, 'WITHSCORES')
end

local function by_score(key)
  if after == '' and from == 0 then
    if descending then return call('ZREVRANGE', key, 0, most - 1, 'WITHSCORES') end
    return call('ZRANGE', key, 0, most - 1, 'WITHSCORES')
  end
  local rank, there = place(key)
  if descending then
    local last = rank - 1
    local found, reversed = last >= 0 and call('ZRANGE', key, math.max(0, last - most + 1), last, 'WITHSCORES') or {}, {}
    for i = #found - 1, 1, -2 do
      reversed[#reversed + 1] = found[i]
      reversed[#reversed + 1] = found[i + 1]
    end
    return reversed
  end
  if there[1] == after and tonumber(there[2]) == from then rank = rank + 1 end
  return call('ZRANGE', key, rank, rank + most - 1, 'WITHSCORES')
end

local function by_id(key)
  local found, listed
  if descending then found = call('ZREVRANGEBYLEX', key, after == '' and '+' or '(' .. after, '-', 'LIMIT', 0, most)
  else found = call('ZRANGEBYLEX', key, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, most) end
  listed = {}
  for _, id in ipairs(found) do
    listed[#listed + 1] = id
    listed[#listed + 1] = '0'
  end
  return listed
end

-- merged returns the first of two lists in one.
local function merged(a, b)
  if #a == 0 or #b == 0 then return #a == 0 and b or a end
  local all, i, k = {}, 1, 1
  while #all < 2 * most and (a[i] or b[k]) do
    local x, y, first = tonumber(a[i + 1] or nil), tonumber(b[k + 1] or nil), b[k] == nil
    if x and y and x ~= y then first = (x < y) ~= descending
    elseif x and y then first = precedes(a[i], b[k]) ~= descending end
    if first then all[#all + 1], all[#all + 2], i = a[i], a[i + 1], i + 2
    else all[#all + 1], all[#all + 2], k = b[k], b[k + 1], k + 2 end
  end
  return all
end

local listed
if order == 'time' then listed = merged(by_score(READY), by_score(PARKED))
elseif order == 'id' then listed = by_id(BYID)
elseif order == 'retries-time' then listed = by_score(RTIME)
elseif order == 'retries-id' then listed = by_id(RID)
elseif order == 'retries-count' then listed = by_score(RCOUNT)
elseif order == 'dead-time' then listed = by_score(DTIME)
else listed = by_id(DID) end

local ids, found, bound, reply, rows = {}, nil, bounds.new(), {'ok', 0}, 0
for i = 1, #listed, 2 do ids[#ids + 1] = listed[i] end
local packed_jobs = read_step(dead and DEAD or JOBS, ids, most_payloads == 0 and 1048576 or nil)
if dead then found = morgue.load(ids, packed_jobs) else found = queue.load(ids, packed_jobs) end

-- some_of returns the payloads that are listed of an item, and how many it has.
local function some_of(item)
  if most_payloads > 0 then
    local _, size = bounds.left(bound)
    return items.first(item, most_payloads, size)
  end
  if item.job.many then return {}, items.count(item) end
  return {}, #item.job.list
end

for i, id in ipairs(ids) do
  local item = found[id]
  local payloads, total = some_of(item)
  local size = 0
  for _, p in ipairs(payloads) do size = size + #p.data end
  if not bounds.fits(bound, #payloads, size) then break end
  bounds.count(bound, #payloads, size)
  for _, v in ipairs({id, listed[2 * i], string.format('%.0f', item.job.at), total, packed.encode_with(item.job, payloads)}) do
    reply[#reply + 1] = v
  end
  rows = rows + 1
end
if rows < #listed / 2 or rows >= most then reply[2] = 1 end
return reply
