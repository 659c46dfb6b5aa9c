#!lua flags=no-writes
-- Lists queued jobs or dead letters of a shard from a cursor.
-- KEYS: all of the shard
-- ARGV: 1 order (time id retries-time retries-id retries-count dead-time dead-id),
--   2 descending (1 or 0), 3 key of the cursor, 4 its id, or '' for the start,
--   5 entries to list, 6 payloads of each
-- Returns {'ok', id, key, PerformAt, count, packed job, ...}
-- Uses: JOBS, READY, PARKED, BYID, RTIME, RID, RCOUNT, DTIME, DID, call, floor, precedes, fetch,
--   packed, items, queue, morgue.

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

local ids, keys = {}, {}
local function gather(found)
  for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
    keys[#keys + 1] = found[i + 1]
  end
end
if order == 'time' then gather(by_score(READY)); gather(by_score(PARKED))
elseif order == 'id' then gather(by_id(BYID))
elseif order == 'retries-time' then gather(by_score(RTIME))
elseif order == 'retries-id' then gather(by_id(RID))
elseif order == 'retries-count' then gather(by_score(RCOUNT))
elseif order == 'dead-time' then gather(by_score(DTIME))
else gather(by_id(DID)) end

local found = dead and morgue.load(ids) or queue.load(ids, fetch('HMGET', JOBS, ids))
local reply = {'ok'}
for i, id in ipairs(ids) do
  local item = found[id]
  local payloads, total = items.first(item, math.max(most_payloads, 1))
  for n = #payloads, most_payloads + 1, -1 do payloads[n] = nil end
  for _, v in ipairs({id, keys[i], string.format('%.0f', item.job.at), total, packed.encode_with(item.job, payloads)}) do
    reply[#reply + 1] = v
  end
end
return reply
