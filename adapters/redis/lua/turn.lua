#!lua flags=allow-oom
-- Settles, renews and claims.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas, lease cancels history
-- ARGV: 1 now or '', 2 owner, 3 token, 4 number, 5 ttl in µs, 6 jobs wanted,
--   7 payloads per job, 8 bytes, 9 mark of the claims, 10 claimer, 11 statistics
--   or '', 12 how many settlements; then their ids, their marks in one text, or one
--   that all have, a byte of code each, and what becomes of those whose code says so
-- Returns {'ok', last, now, remaining, paused, head or -1, skipped, claims,
--   cancels}; claims are id, then PerformAt and record; cancels id, value. Or
--   {'again', ...} for a repeat, {'unknown'}, {'lost'}, {'stale', last},
--   {'ahead', last}
-- A claim is stored as mark, since, claimer, PerformAt, record.

local ARGV = ARGV
local now, owner, token, number, ttl = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local want, perjob, bytes = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local mark, claimer, stats = ARGV[9], ARGV[10], ARGV[11]
local MOST, E = 1000, nil

local meta = call('HMGET', META, 'shards', 'index', 'paused')
if not meta[1] then return {'unknown'} end
local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires', 'recovered', 'processed', 'failed')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local last, index, paused = tonumber(lease[4]), meta[2] == '1', meta[3] == '1'
if number < last then return {'stale', last} end
if number > last + 1 then return {'ahead', last} end
local recovered, expires = tonumber(lease[7] or 0), within(now + ttl)
local cancels = call('HGETALL', CANCELS)

-- tail is PerformAt and record of a stored claim.
local function tail(value) return sub(value, 27 + parse('>I2', value, 25)) end

-- again answers a repeat: the claims of this mark, and what is so now.
local function again()
  local claims, held, head = {}, call('HGETALL', CLAIMS), -1
  for i = 1, #held, 2 do
    if sub(held[i + 1], 1, 16) == mark then
      claims[#claims + 1] = held[i]
      claims[#claims + 1] = tail(held[i + 1])
    end
  end
  local ready = call('ZRANGE', READY, 0, 0, 'WITHSCORES')
  if ready[1] and not paused and recovered == 0 and
    (#held == 0 or byte(call('HGET', JOBS, ready[1])) < RECOVERED) then head = tonumber(ready[2]) end
  call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
  return {'again', last, now, expires - now, paused and 1 or 0, head, {}, claims, cancels}
end
if number == last then return again() end

-- Settle: which claims end, and which of them leave something.
local ids, freed, gone, skipped, ended, processed, failed = {}, {}, {}, {}, {}, 0, 0
local n = tonumber(ARGV[12])
for i = 1, n do ids[i] = ARGV[12 + i] end
local values, marks, codes, text = fetch('HMGET', CLAIMS, ids), ARGV[13 + n], ARGV[14 + n], 14 + n
for i, id in ipairs(ids) do
  local value, code, of = values[i], byte(codes, i), #marks > 16 and i or 1
  if code > 3 then text = text + 1 end
  if not value or gone[id] or sub(value, 1, 16) ~= sub(marks, 16 * of - 15, 16 * of) then
    skipped[#skipped + 1] = i - 1
  else
    gone[id] = true
    freed[#freed + 1] = id
    if code % 2 > 0 then processed = processed + 1 end
    if code % 4 > 1 then failed = failed + 1 end
    if recovered > 0 and byte(tail(value), 9) >= RECOVERED then recovered = recovered - 1 end
    if code > 3 then ended[#ended + 1] = {id = id, rest = tail(value), what = ARGV[text]} end
  end
end

-- leave merges what ended claims leave: into moved, the queued jobs that
-- changed, and deads. What becomes of a claim is code, what of the payloads not
-- excepted, whether at the same time, delay, RetryCount, Recoveries, error, error of
-- the buried, and the exceptions as position and disposition.
local function leave(moved, deads)
  local REQUEUE, BURY = 1, 2
  local function disposed(x)
    local claim = E.decode(sub(x.rest, 9), (parse('>I8', x.rest)))
    local what, back, dead, except = x.what, {}, {}, {}
    local others, same, delay, retry, recoveries, n, pos = parse('>BBi8i4I4I4', what)
    local job = {at = same == 1 and claim.at or within(now + delay), first = claim.first, retry = retry,
      recoveries = recoveries, error = sub(what, pos, pos + n - 1), many = false, tagged = false, list = back}
    n, pos = parse('>I4', what, pos + n)
    local reason, count = sub(what, pos, pos + n - 1), nil
    count, pos = parse('>I4', what, pos + n)
    for _ = 1, count do
      local position, d
      position, d, pos = parse('>I4B', what, pos)
      except[position] = d
    end
    for i, p in ipairs(claim.list) do
      local d = except[i - 1] or others
      if d == REQUEUE then
        back[#back + 1] = p
        job.tagged = job.tagged or p.meta ~= ''
      elseif d == BURY then dead[#dead + 1] = p end
    end
    return job, dead, reason
  end
  local back = {}
  for i, x in ipairs(ended) do back[i] = x.id end
  local queued, buried = E.load(back, fetch('HMGET', JOBS, back)), E.load_dead(back)
  for _, x in ipairs(ended) do
    local job, dead, reason = disposed(x)
    local e = queued[x.id]
    if #dead > 0 then
      E.bury(buried, x.id, dead, reason, now)
      deads[#deads + 1] = buried[x.id]
    end
    if #job.list > 0 and e then
      local there = e.job
      there.at, there.retry, there.error = job.at, job.retry, job.error
      there.recoveries, there.first = math.max(there.recoveries, job.recoveries), math.min(there.first, job.first)
      E.unite(e, job.list)
    elseif #job.list > 0 then
      e = {id = x.id, area = E.queue, job = job}
    end
    if #job.list > 0 then moved[x.id] = e end
  end
end

local moved, deads, waiting = {}, {}, {} -- waiting: parked jobs that are free now
if #freed > 0 and call('ZCARD', PARKED) > 0 then
  for i, at in ipairs(fetch('ZMSCORE', PARKED, freed)) do waiting[freed[i]] = at and tonumber(at) or nil end
end
if #ended > 0 then
  E = entities()
  leave(moved, deads)
end

-- Claim: candidates are the first ready jobs, and those that this turn has freed.
local ready, order, times = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, {}
for i = 1, #ready, 2 do
  order[#order + 1] = ready[i]
  times[#times + 1] = tonumber(ready[i + 1])
end
if next(moved) or next(waiting) then
  local at = {}
  for i, id in ipairs(order) do at[id] = times[i] end
  for _, id in ipairs(freed) do
    local time = moved[id] and moved[id].job.at or waiting[id]
    if time then at[id], order[#order + 1] = time, id end
  end
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

-- isolated reports whether candidate k was recovered, so that it runs alone.
local function isolated(k)
  local e = moved[order[k]]
  if e then return e.job.recoveries > 0 end
  return byte(record(k)) >= RECOVERED
end

local claims, chosen, taken, payloads, size, cut, k = {}, {}, 0, 0, 0, false, 1
-- free reports whether nothing is claimed.
local function free() return taken == 0 and call('HLEN', CLAIMS) == #freed end

-- some claims as many payloads of a job as fit; the rest stays, parked.
local function some(id, e)
  E = E or entities()
  if not e then
    local job = E.decode(record(k), times[k])
    e = {id = id, area = E.queue, job = job,
      old = {at = job.at, place = waiting[id] and PARKED or READY, retry = job.retry, many = job.many}}
  end
  local all, total = E.first(e, math.min(perjob, MOST))
  local got, names, left = {}, {}, {}
  for _, p in ipairs(all) do
    if payloads > 0 and (#got >= perjob or payloads >= MOST or size + #p.data > bytes) then break end
    got[#got + 1], names[p.data] = p, true
    payloads, size = payloads + 1, size + #p.data
  end
  if #got == 0 then return end
  local rec = E.packed(e.job, got)
  cut = #got < total
  if cut then
    for _, p in ipairs(e.job.list) do if not names[p.data] then left[#left + 1] = p end end
    e.job.list, e.taken = left, got
    E.enqueue(e, PARKED, index)
  elseif e.old then E.remove(e, index) end
  return rec
end

local prefix, plain, came = mark .. pack('>I8', now) .. claimer, {}, {}
while not paused and not cut and taken < want and order[k] and times[k] <= now do
  local id, rec = order[k], nil
  local e, single = moved[id], isolated(k)
  if recovered > 0 or single and not free() then break end
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
  if single then recovered = recovered + 1 end
end

local head = -1
if order[k] and not paused and recovered == 0 and not (isolated(k) and not free()) then head = times[k] end
local open = #cancels > 0 and {} or cancels
for i = 1, #cancels, 2 do
  if gone[cancels[i]] then hdel(CANCELS, cancels[i])
  else open[#open + 1] = cancels[i]; open[#open + 1] = cancels[i + 1] end
end
if #ids == 0 and stats == '' and taken == 0 then
  local remaining = math.max(0, math.min(tonumber(lease[6]), now + tonumber(lease[5])) - now)
  return {'ok', last, now, remaining, paused and 1 or 0, head, skipped, claims, open}
end

for _, id in ipairs(freed) do if not chosen[id] then hdel(CLAIMS, id) end end
for _, id in ipairs(plain) do hdel(JOBS, id) end
if #came > 0 then hsets[CLAIMS] = came end
for id, time in pairs(waiting) do
  if not moved[id] then zadd(READY, time, id); zrem(PARKED, id) end
end
for id, e in pairs(moved) do if not chosen[id] then E.enqueue(e, READY, index) end end
for _, e in ipairs(deads) do E.keep_dead(e) end

-- count adds the statistics, "slot=n slot=n", to the minute.
local function count()
  local DAY, MINUTE, sums, texts = 86400000000, 60000000, {}, {}
  local minute = string.format('%.0f', now - now % MINUTE)
  local there = call('HGET', HISTORY, minute)
  for slot, n in string.gmatch((there or '') .. ' ' .. stats, '(%d+)=(%d+)') do sums[slot] = (sums[slot] or 0) + n end
  for slot, n in pairs(sums) do texts[#texts + 1] = slot .. '=' .. string.format('%.0f', n) end
  if #texts > 0 then hset(HISTORY, minute, table.concat(texts, ' ')) end
  for _, old in ipairs(there and {} or call('HKEYS', HISTORY)) do
    if tonumber(old) < minute - DAY then hdel(HISTORY, old) end
  end
end
if stats ~= '' then count() end
hsets[LEASE] = {'last', number, 'ttl', ttl, 'expires', expires, 'recovered', recovered,
  'processed', tonumber(lease[8] or 0) + processed, 'failed', tonumber(lease[9] or 0) + failed}
write()
return {'ok', number, now, expires - now, paused and 1 or 0, head, skipped, claims, open}
