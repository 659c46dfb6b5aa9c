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
    if alone > 0 and byte(tail(value), 9) >= ALONE then alone = alone - 1 end
    if code > 3 then ended[#ended + 1] = {id = id, rest = tail(value), what = ARGV[text]} end
  end
end

-- Begin: which claims have begun from now on.
local resent, begun, unbegun = ARGV[text + 1] == '1', {}, {}
for i = text + 2, #ARGV, 2 do
  local id = ARGV[i]
  local value = not gone[id] and call('HGET', CLAIMS, id)
  if value and sub(value, 1, 16) == ARGV[i + 1] then
    begun[#begun + 1] = id
    begun[#begun + 1] = sub(value, 1, 16) .. char(1) .. sub(value, 18)
  else unbegun[#unbegun + 1] = (i - text) / 2 - 1 end
end

-- leave merges what ended claims leave: into moved, the queued jobs that
-- changed, and deads. What becomes of a claim is code, what of the payloads not
-- excepted, whether at the same time, delay, RetryCount, Recoveries, error, error of
-- the buried, and the exceptions as position and disposition.
local function leave(moved, deads)
  local REQUEUE, BURY = 1, 2
  local function disposed(x)
    local claim = decode(sub(x.rest, 9), (parse('>I8', x.rest)))
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
  local back, left, dying = {}, {}, {}
  for i, x in ipairs(ended) do
    local job, dead, reason = disposed(x)
    back[i], left[i] = x.id, {job = job, dead = dead, reason = reason}
    if #dead > 0 then dying[#dying + 1] = x.id end
  end
  local queued, buried = load(back, fetch('HMGET', JOBS, back)), load_dead(dying)
  for i, id in ipairs(back) do
    local job, dead, e = left[i].job, left[i].dead, queued[id]
    if #dead > 0 then
      bury(buried, id, dead, left[i].reason, now)
      deads[#deads + 1] = buried[id]
    end
    if #job.list > 0 and e then
      local there = e.job
      there.at, there.retry, there.error = job.at, job.retry, job.error
      there.recoveries, there.first = math.max(there.recoveries, job.recoveries), math.min(there.first, job.first)
      unite(e, job.list)
    elseif #job.list > 0 then
      e = {id = id, area = living, job = job}
    end
    if #job.list > 0 then moved[id] = e end
  end
end

local moved, deads, waiting = {}, {}, {} -- waiting: parked jobs that are free now
if #freed > 0 and call('ZCARD', PARKED) > 0 then
  for i, at in ipairs(fetch('ZMSCORE', PARKED, freed)) do waiting[freed[i]] = at and tonumber(at) or nil end
end
if #ended > 0 then leave(moved, deads) end
