#!lua flags=allow-oom
-- Settles, renews and claims.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas, lease cancels history
-- ARGV: 1 now or '', 2 owner, 3 token, 4 number, 5 ttl in µs, 6 jobs wanted,
--   7 payloads per job, 8 bytes, 9 mark of the claims, 10 claimer, 11 statistics
--   or ''; then for each settlement: id, mark, what becomes of it
-- Returns {'ok', last, now, remaining, paused, head or -1, skipped, claims,
--   cancels}; claims are id, PerformAt and record, cancels id and value. Or
--   {'again', ...} for a repeat, {'unknown'}, {'lost'}, {'stale', last},
--   {'ahead', last}
-- A claim is stored as mark, since, claimer, PerformAt, record.

local now, owner, token, number, ttl = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local want, perjob, bytes = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local mark, claimer, stats = ARGV[9], ARGV[10], ARGV[11]
local MOST, DAY, MINUTE = 1000, 86400000000, 60000000
local REQUEUE, BURY = 1, 2

local meta = call('HMGET', META, 'shards', 'index', 'paused', 'recovered', 'processed', 'failed')
if not meta[1] then return {'unknown'} end
local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local last, index, paused = tonumber(lease[4]), meta[2] == '1', meta[3] == '1'
if number < last then return {'stale', last} end
if number > last + 1 then return {'ahead', last} end
local recovered, expires = tonumber(meta[4] or 0), within(now + ttl)
local cancels = call('HGETALL', CANCELS)

-- tail is what a stored claim has after its claimer.
local function tail(value) return sub(value, 27 + parse('>I2', value, 25)) end

local function isolated(rec) return band(byte(rec), RECOVERED) > 0 end

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
    (#held == 0 or not isolated(call('HGET', JOBS, ready[1]))) then head = tonumber(ready[2]) end
  call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
  return {'again', last, now, expires - now, paused and 1 or 0, head, {}, claims, cancels}
end
if number == last then return again() end

-- Settle: which claims end, and what of them comes back or is buried.
local ids, freed, gone, skipped, ended, marks = {}, {}, {}, {}, {}, {}
local processed, failed = 0, 0
for i = 12, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local values = fetch('HMGET', CLAIMS, ids)
for i = 1, #cancels, 2 do marks[cancels[i]] = cancels[i + 1] end
for i, id in ipairs(ids) do
  local value, what = values[i], ARGV[3 * i + 11]
  if not value or gone[id] or sub(value, 1, 16) ~= ARGV[3 * i + 10] then
    skipped[#skipped + 1] = i - 1
  else
    local code, job, pos = byte(what), nil, nil
    gone[id] = true
    freed[#freed + 1] = id
    if marks[id] then hdel(CANCELS, id) end
    processed, failed = processed + code % 2, failed + floor(code / 2) % 2
    if recovered > 0 or code >= 4 then
      local rest = tail(value)
      job, pos = decode(sub(rest, 9), (parse('>I8', rest)))
      if job.recoveries > 0 then recovered = recovered - 1 end
      if code >= 4 then ended[#ended + 1] = {id = id, job = job, rest = rest, pos = pos, what = what} end
    end
  end
end

-- unpacked lists the payloads of a claim.
local function unpacked(x)
  if not x.job.many then return x.job.list end
  local all, count, pos = {}, parse('>I4', x.rest, x.pos + 8)
  for i = 1, count do
    local score, n, m
    score, n, m, pos = parse('>dI4I2', x.rest, pos)
    all[i] = {score = score, data = sub(x.rest, pos, pos + n - 1), meta = sub(x.rest, pos + n, pos + n + m - 1)}
    pos = pos + n + m
  end
  return all
end

-- parts reads a settlement: what comes back, with its state, and what is buried.
local function parts(x)
  local what, rest, same, delay, retry, recoveries, n, pos, count, at, d = x.what, parse('>BBi8i4I4I4', x.what, 2)
  local back, dead, except = {}, {}, {}
  local state = {at = same == 1 and x.job.at or within(now + delay), first = x.job.first,
    retry = retry, recoveries = recoveries, error = sub(what, pos, pos + n - 1), many = false, tagged = false, list = back}
  n, pos = parse('>I4', what, pos + n)
  local reason = sub(what, pos, pos + n - 1)
  count, pos = parse('>I4', what, pos + n)
  for _ = 1, count do
    at, d, pos = parse('>I4B', what, pos)
    except[at] = d
  end
  for i, p in ipairs(unpacked(x)) do
    d = except[i - 1] or rest
    if d == REQUEUE then back[#back + 1] = p elseif d == BURY then dead[#dead + 1] = p end
  end
  return state, dead, reason
end

local moved, deads, waiting = {}, {}, {}
local parked = #freed > 0 and call('ZCARD', PARKED) > 0 and fetch('ZMSCORE', PARKED, freed) or {}
for i, id in ipairs(freed) do waiting[id] = tonumber(parked[i] or nil) end
if #ended > 0 then
  local back = {}
  for i, x in ipairs(ended) do back[i] = x.id end
  local queued = load(back, fetch('HMGET', JOBS, back))
  deads = load_dead(back)
  for _, x in ipairs(ended) do
    local state, dead, reason = parts(x)
    if #dead > 0 then bury(deads, x.id, dead, reason, now) end
    if #state.list > 0 then
      local e = queued[x.id]
      if e then
        e.job.at, e.job.retry, e.job.error = state.at, state.retry, state.error
        e.job.recoveries, e.job.first = math.max(e.job.recoveries, state.recoveries), math.min(e.job.first, state.first)
        unite(e, state.list)
      else
        for _, p in ipairs(state.list) do if p.meta ~= '' then state.tagged = true end end
        e = {id = x.id, area = queue, job = state}
      end
      moved[x.id] = e
    end
  end
end

-- Claim: the ready jobs, and among them those that this turn has freed.
local ready, order, at, added = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, {}, false
for i = 1, #ready, 2 do
  order[#order + 1] = ready[i]
  at[ready[i]] = tonumber(ready[i + 1])
end
for _, id in ipairs(freed) do
  local time = moved[id] and moved[id].job.at or waiting[id]
  if time then added, at[id], order[#order + 1] = true, time, id end
end
if added then
  table.sort(order, function(a, b)
    if at[a] ~= at[b] then return at[a] < at[b] end
    return precedes(a, b)
  end)
end

local recs = {}
local function record(k) -- some at a time, since payloads may be large
  if not recs[k] then
    local some = call('HMGET', JOBS, unpack(order, k, math.min(k + 31, #order)))
    for i, rec in ipairs(some) do recs[k + i - 1] = rec end
  end
  return recs[k]
end

-- alone reports whether candidate k was recovered and so is claimed alone.
local function alone(k)
  local e = moved[order[k]]
  if e then return e.job.recoveries > 0 end
  return isolated(record(k))
end

local claims, chosen, taken, payloads, size, cut, k = {}, {}, 0, 0, 0, false, 1
local held, prefix = call('HLEN', CLAIMS) - #freed, mark .. pack('>I8', now) .. claimer

local function fits(n, data)
  return payloads == 0 or n < perjob and payloads < MOST and size + #data <= bytes
end

-- whole claims a stored job of one payload, without unpacking it if it is plain.
local function whole(id, rec)
  local flags, job = byte(rec), nil
  local n = #rec - (flags == WIDE and 9 or 8)
  if flags > WIDE then
    job = decode(rec, at[id])
    n = #job.list[1].data
  end
  if payloads > 0 and (payloads >= MOST or size + n > bytes) then return end
  payloads, size = payloads + 1, size + n
  hdel(JOBS, id)
  zrem(waiting[id] and PARKED or READY, id)
  unlist(id, job and job.retry or -1, index)
  return rec
end

-- some claims as many payloads of a job as fit; the rest stays, parked.
local function some(e)
  local most = math.min(perjob, MOST)
  local all, total = first(e, most)
  local got, left, names = {}, {}, {}
  while #got < #all and fits(#got, all[#got + 1].data) do
    local p = all[#got + 1]
    got[#got + 1], names[p.data] = p, true
    payloads, size = payloads + 1, size + #p.data
  end
  if #got == 0 then return end
  local rec = packed(e.job, got)
  cut = #got < total
  if not cut then
    if e.old then remove(e, index) end
    return rec
  end
  for _, p in ipairs(e.job.list) do if not names[p.data] then left[#left + 1] = p end end
  e.job.list, e.taken = left, got
  enqueue(e, PARKED, index)
  return rec
end

local function entity(id, rec)
  local job = decode(rec, at[id])
  return {id = id, area = queue, job = job,
    old = {at = job.at, place = waiting[id] and PARKED or READY, retry = job.retry, many = job.many}}
end

while not paused and not cut and taken < want and order[k] and at[order[k]] <= now do
  local id, single = order[k], alone(k)
  if recovered > 0 or single and held > 0 then break end
  local e, rec = moved[id], nil
  if not e and band(byte(record(k)), MANY) == 0 then rec = whole(id, record(k))
  else rec = some(e or entity(id, record(k))) end
  if not rec then break end
  rec = pack('>I8', at[id]) .. rec
  hset(CLAIMS, id, prefix .. rec)
  claims[#claims + 1] = id
  claims[#claims + 1] = rec
  chosen[id], waiting[id] = true, nil
  taken, held, k = taken + 1, held + 1, k + 1
  if single then recovered = recovered + 1 end
end

local head = -1
if order[k] and not paused and recovered == 0 and not (held > 0 and alone(k)) then head = at[order[k]] end
local open = {}
for i = 1, #cancels, 2 do
  if not gone[cancels[i]] then open[#open + 1] = cancels[i]; open[#open + 1] = cancels[i + 1] end
end
if #ids == 0 and stats == '' and taken == 0 then
  local remaining = math.max(0, math.min(tonumber(lease[6]), now + tonumber(lease[5])) - now)
  return {'ok', last, now, remaining, paused and 1 or 0, head, skipped, claims, open}
end

for _, id in ipairs(freed) do if not chosen[id] then hdel(CLAIMS, id) end end
for id, time in pairs(waiting) do
  if not moved[id] then zadd(READY, time, id); zrem(PARKED, id) end
end
for id, e in pairs(moved) do if not chosen[id] then enqueue(e, READY, index) end end
for _, e in pairs(deads) do if e.changed then keep_dead(e) end end

-- count adds statistics, "slot=n slot=n ...", to the minute.
local function count()
  local minute, sums, texts = string.format('%.0f', now - now % MINUTE), {}, {}
  local there = call('HGET', HISTORY, minute)
  for slot, n in string.gmatch((there or '') .. ' ' .. stats, '(%d+)=(%d+)') do sums[slot] = (sums[slot] or 0) + n end
  for slot, n in pairs(sums) do texts[#texts + 1] = slot .. '=' .. string.format('%.0f', n) end
  if #texts > 0 then hset(HISTORY, minute, table.concat(texts, ' ')) end
  for _, old in ipairs(there and {} or call('HKEYS', HISTORY)) do
    if tonumber(old) < minute - DAY then hdel(HISTORY, old) end
  end
end
if stats ~= '' then count() end

if processed + failed > 0 or recovered ~= tonumber(meta[4] or 0) then
  hset(META, 'processed', tonumber(meta[5] or 0) + processed)
  hset(META, 'failed', tonumber(meta[6] or 0) + failed)
  hset(META, 'recovered', recovered)
end
hset(LEASE, 'last', number)
hset(LEASE, 'ttl', ttl)
hset(LEASE, 'expires', expires)
write()
return {'ok', number, now, expires - now, paused and 1 or 0, head, skipped, claims, open}
