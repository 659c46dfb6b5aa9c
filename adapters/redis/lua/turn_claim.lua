-- Claim: candidates are the first ready jobs, and those that this turn has freed.
local ready, order, times = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, {}
for i = 1, #ready, 2 do
  order[#order + 1] = ready[i]
  times[#times + 1] = tonumber(ready[i + 1])
end
if next(moved) or next(waiting) then
  local at, soonest = {}, nil -- of those that are not due, the first is enough: for the head
  for i, id in ipairs(order) do at[id] = times[i] end
  for _, id in ipairs(freed) do
    local time = moved[id] and moved[id].job.at or waiting[id]
    if time and time <= now then at[id], order[#order + 1] = time, id
    elseif time and (not soonest or time < at[soonest] or time == at[soonest] and precedes(id, soonest)) then
      at[id], soonest = time, id
    end
  end
  if soonest then order[#order + 1] = soonest end
  table.sort(order, function(a, b)
    if at[a] ~= at[b] then return at[a] < at[b] end
    return precedes(a, b)
  end)
  for i, id in ipairs(order) do times[i] = at[id] end
end

local recs = {}
local function record(k) -- some at a time, since payloads may be large
  if not recs[k] then
    for i, rec in ipairs(call('HMGET', JOBS, unpack(order, k, math.min(k + 31, #order)))) do recs[k + i - 1] = rec end
  end
  return recs[k]
end

-- isolated reports whether candidate k was recovered twice, so that it runs alone.
local function isolated(k)
  local e = moved[order[k]]
  if e then return e.job.recoveries >= 2 end
  return byte(record(k)) >= ALONE
end

local claims, chosen, taken, payloads, size, cut, k = {}, {}, 0, 0, 0, false, 1
-- free reports whether nothing is claimed.
local function free() return taken == 0 and call('HLEN', CLAIMS) == #freed end

-- some claims as many payloads of a job as fit; the rest stays, parked.
local function some(id, e)
  if not e then
    local job = decode(record(k), times[k])
    e = {id = id, area = living, job = job,
      old = {at = job.at, place = waiting[id] and PARKED or READY, retry = job.retry, many = job.many}}
  end
  local all, total = first(e, math.min(perjob, MOST))
  local got, names, left = {}, {}, {}
  for _, p in ipairs(all) do
    if payloads > 0 and (payloads >= MOST or size + #p.data > bytes) then break end
    got[#got + 1], names[p.data] = p, true
    payloads, size = payloads + 1, size + #p.data
  end
  if #got == 0 then return end
  local rec = packed(e.job, got)
  cut = #got < total
  if cut then
    for _, p in ipairs(e.job.list) do if not names[p.data] then left[#left + 1] = p end end
    e.job.list, e.taken = left, got
    enqueue(e, PARKED, index)
  elseif e.old then remove(e, index) end
  return rec
end

local prefix, plain, came = mark .. pack('>I8', now) .. claimer, {}, {}
while not paused and not cut and taken < want and order[k] and times[k] <= now do
  local id, rec = order[k], nil
  local e, single = moved[id], isolated(k)
  if alone > 0 or single and not free() then break end
  local flags = e and MANY or byte(record(k))
  if flags <= WIDE then -- one payload and no more to it: it moves as it is
    rec = record(k)
    local n = #rec - 8 - flags
    if payloads > 0 and (payloads >= MOST or size + n > bytes) then break end
    payloads, size = payloads + 1, size + n
    plain[#plain + 1] = id
    if waiting[id] then zrem(PARKED, id) else zrem(READY, id) end
    if index then zrem(BYID, id) end
  else
    rec = some(id, e)
    if not rec then break end
  end
  rec = pack('>I8', times[k]) .. rec
  came[#came + 1] = id
  came[#came + 1] = prefix .. rec
  claims[#claims + 1] = id
  claims[#claims + 1] = rec
  chosen[id], waiting[id] = true, nil
  taken, k = taken + 1, k + 1
  if single then alone = alone + 1 end
end
