-- The first half of a turn: claims end or begin, and what ended leaves is merged.
-- Uses: PARKED, JOBS, CLAIMS, ALONE, call, sub, byte, char, parse, instant, fetch, packed,
--   items, queue, morgue.
-- Defines: claim_rest, settle_claims, begin_claims, merge_left, free_parked.

-- claim_rest returns PerformAt and packed job of a claim as it is stored.
local function claim_rest(value) return sub(value, 27 + parse('>I2', value, 25)) end

-- settle_claims finds the claims that the settlements of a turn end; ARGV[12] is how many
-- settlements there are, and alone how many claims run alone. It returns
--   freed: the ids of claims that end, in order, and gone: the same as a set
--   skipped: the positions of settlements whose claim is not there
--   left: what becomes of those that leave something, each as id, rest, and what
--   processed and failed: how many count as such
--   alone: how many of the claims that stay run alone
--   last: the index of the last ARGV that is about settlements
local function settle_claims(alone)
  local s = {freed = {}, gone = {}, skipped = {}, left = {}, processed = 0, failed = 0, alone = alone, last = 0}
  local n, ids = tonumber(ARGV[12]), {}
  for i = 1, n do ids[i] = ARGV[12 + i] end
  local values, receipts, codes, text = fetch('HMGET', CLAIMS, ids), ARGV[13 + n], ARGV[14 + n], 14 + n
  local freed, gone = s.freed, s.gone
  for i, id in ipairs(ids) do
    local value, code, of = values[i], byte(codes, i), #receipts > 16 and i or 1
    if code > 3 then text = text + 1 end
    if not value or gone[id] or sub(value, 1, 16) ~= sub(receipts, 16 * of - 15, 16 * of) then
      s.skipped[#s.skipped + 1] = i - 1
    else
      gone[id] = true
      freed[#freed + 1] = id
      if code % 2 > 0 then s.processed = s.processed + 1 end
      if code % 4 > 1 then s.failed = s.failed + 1 end
      if s.alone > 0 and byte(claim_rest(value), 9) >= ALONE then s.alone = s.alone - 1 end
      if code > 3 then s.left[#s.left + 1] = {id = id, rest = claim_rest(value), what = ARGV[text]} end
    end
  end
  s.last = text
  return s
end

-- begin_claims finds the claims that have begun, from ARGV[from] on; gone are the ids
-- whose claims end. It returns what is to be stored, as id, claim, ..., and the positions
-- of those whose claim is not there.
local function begin_claims(from, gone)
  local begun, not_begun = {}, {}
  for i = from, #ARGV, 2 do
    local id = ARGV[i]
    local value = not gone[id] and call('HGET', CLAIMS, id)
    if value and sub(value, 1, 16) == ARGV[i + 1] then
      begun[#begun + 1] = id
      begun[#begun + 1] = sub(value, 1, 16) .. char(1) .. sub(value, 18)
    else not_begun[#not_begun + 1] = (i - from) / 2 end
  end
  return begun, not_begun
end

-- dispose returns what an ended claim leaves: a job, whose list is the payloads that go
-- back into the queue, those that are buried, and the error they are buried with.
-- x.what is the code of the payloads that are not excepted, whether PerformAt stays (1
-- or 0), delay, RetryCount, Recoveries, error, error of the buried, and the exceptions
-- as position and code.
local function dispose(x, now)
  local REQUEUE, BURY = 1, 2
  local claim = packed.decode(sub(x.rest, 9), (parse('>I8', x.rest)))
  local what, back, dead, except = x.what, {}, {}, {}
  local others, same, delay, retry, recoveries, n, pos = parse('>BBi8i4I4I4', what)
  local job = {at = same == 1 and claim.at or instant(now + delay), first = claim.first, retry = retry,
    recoveries = recoveries, error = sub(what, pos, pos + n - 1), many = false, tagged = false, list = back}
  n, pos = parse('>I4', what, pos + n)
  local reason, count = sub(what, pos, pos + n - 1), nil
  count, pos = parse('>I4', what, pos + n)
  for _ = 1, count do
    local position, code
    position, code, pos = parse('>I4B', what, pos)
    except[position] = code
  end
  for i, p in ipairs(claim.list) do
    local code = except[i - 1] or others
    if code == REQUEUE then
      back[#back + 1] = p
      job.tagged = job.tagged or p.meta ~= ''
    elseif code == BURY then dead[#dead + 1] = p end
  end
  return job, dead, reason
end

-- merge_left merges what ended claims leave with what is stored of their ids. It returns
-- the items of queued jobs that change, by id, and the list of those of dead letters.
local function merge_left(left, now)
  local moved, changed, ids, dead_ids = {}, {}, {}, {}
  if #left == 0 then return moved, changed end
  for i, x in ipairs(left) do
    x.job, x.dead, x.reason = dispose(x, now)
    ids[i] = x.id
    if #x.dead > 0 then dead_ids[#dead_ids + 1] = x.id end
  end
  local jobs, dead = queue.load(ids, fetch('HMGET', JOBS, ids)), morgue.load(dead_ids)
  for _, x in ipairs(left) do
    local id, job, item = x.id, x.job, jobs[x.id]
    if #x.dead > 0 then changed[#changed + 1] = morgue.add(dead, id, x.dead, x.reason, now) end
    if #job.list > 0 and item then
      local there = item.job
      there.at, there.retry, there.error = job.at, job.retry, job.error
      there.recoveries, there.first = math.max(there.recoveries, job.recoveries), math.min(there.first, job.first)
      items.unite(item, job.list)
    elseif #job.list > 0 then
      item = queue.item(id, job)
    end
    if #job.list > 0 then moved[id] = item end
  end
  return moved, changed
end

-- free_parked returns PerformAt of the parked jobs whose claims end, by id.
local function free_parked(freed)
  local waiting = {}
  if #freed > 0 and call('ZCARD', PARKED) > 0 then
    for i, at in ipairs(fetch('ZMSCORE', PARKED, freed)) do waiting[freed[i]] = at and tonumber(at) or nil end
  end
  return waiting
end
