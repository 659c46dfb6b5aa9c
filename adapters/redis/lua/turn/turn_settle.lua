-- The first half of a turn: claims end, lose single payloads or begin, and the payloads that ended
-- claims leave merge.
-- Uses: PARKED, JOBS, CLAIMS, DEAD, call, sub, byte, char, parse, instant, fetch, bounds, readable,
--   unite_tags, packed, items, queue, morgue, noted, claim_from, claim_weight, claim_alone,
--   plan, CANCELS, NOTED, note, is_full.
-- Defines: settle_claims, end_parts, begin_claims, merge_left, free_parked.

-- kept returns the part of failures that is kept: all of them, or the first bytes of the newest on a
-- full server.
local function kept(failures)
  local SHORT = 128
  if #failures <= SHORT or not is_full() then return failures end
  return packed.short_failures(failures, SHORT)
end

-- dispose returns what an ended claim leaves: a job, whose list has the payloads that go back into
-- the queue, and a dead letter with the payloads that are buried, or nil if none is. claim_value is
-- the stored claim, which can be read. what is the code of the payloads that are not excepted, the
-- time (0 after the delay, 1 PerformAt stays, 2 awaits), delay, RetryCount, Recoveries, failures,
-- the slot, the exceptions as position and code, and the packed dead letter without payloads.
local function dispose(claim_value, what, now)
  local REQUEUE, BURY, SAME, AWAITS = 1, 2, 1, 2
  local from = claim_from(claim_value)
  local job = packed.decode(claim_value, (parse('>I8', claim_value, from)), nil, from + 8)
  local payloads, back, buried, except = job.list, {}, {}, {}
  local others, time, delay, retry, recoveries, n, pos = parse('>BBi8i4I4I4', what)
  job.at, job.awaits = time == SAME and job.at or instant(now + delay), time == AWAITS
  job.retry, job.recoveries, job.failures = retry, recoveries, kept(sub(what, pos, pos + n - 1))
  job.list, job.annotated = back, false

  n, pos = parse('>I2', what, pos + n)
  job.slot = sub(what, pos, pos + n - 1)
  local count
  count, pos = parse('>I4', what, pos + n)
  for _ = 1, count do
    local position, code
    position, code, pos = parse('>I4B', what, pos)
    except[position] = code
  end

  for i, p in ipairs(payloads) do
    local code = except[i - 1] or others
    if code == REQUEUE then
      back[#back + 1] = p
      job.annotated = job.annotated or p.meta ~= ''
    elseif code == BURY then buried[#buried + 1] = p end
  end
  if #buried == 0 then return job end

  local letter = packed.decode_dead(sub(what, pos), now)
  letter.failures, letter.tags, letter.list = kept(letter.failures), job.tags, buried
  return job, letter
end

-- settle_claims finds the claims that the settlements of a turn end; ARGV[12] is how many
-- settlements there are, and alone how many claims run alone. It returns
--   freed: the ids of claims that end, in order, gone: the same as a set, and notes: those of them
--     that have a note, as a list
--   skipped: the positions of settlements whose claim is not there
--   deferred: the positions of those that are too much for this turn
--   left: what becomes of those that leave something: id, and job and letter as of dispose
--   processed and failed: how many count as such
--   alone: how many of the claims that stay run alone
--   stale: how many stale payloads were dropped
--   records, results: those of claims that are recorded, by the position of their id in freed
--   marks: ids and records of marks in turn
--   last: the index of the last ARGV that is about settlements
--
-- The bytes of claims that are read are bounded, even for claims that leave little or nothing: one
-- without a note is read for its receipt.
local function settle_claims(alone, now)
  local MOST_REMOVED = 4194304
  local PROCESSED, FAILED, PARTS, RECORD, RESULT, MARK, STALE = 1, 2, 4, 8, 16, 32, 64 -- bits of a settlement's code, as in settlement.go of internal/record
  local s = {freed = {}, gone = {}, notes = {}, skipped = {}, deferred = {}, left = {}, records = {}, results = {}, marks = {}, stale = 0, processed = 0, failed = 0, alone = alone, last = 0}
  local n, ids = tonumber(ARGV[12]), {}
  for i = 1, n do ids[i] = ARGV[12 + i] end
  local receipts, codes, text = ARGV[13 + n], ARGV[14 + n], 14 + n
  local freed, gone, bound, removed, full, last = s.freed, s.gone, bounds.new(), 0, false, false

  -- leave reports whether the claim that a settlement ends fits the bound, together with what it
  -- may meet in queue and morgue, and keeps what it leaves if so. n and weight come from its note,
  -- if it has one.
  local function leave(id, value, n, weight)
    local beside = call('HSTRLEN', JOBS, id) + call('HSTRLEN', DEAD, id)
    if n and not bounds.fits(bound, n, weight + beside) then return false end
    value = value or call('HGET', CLAIMS, id)
    local count, size = readable('c', id, claim_weight, value)
    size = size + beside
    if not bounds.fits(bound, count, size) then return false end

    bounds.count(bound, count, size)
    local job, letter = dispose(value, ARGV[text], now)
    s.left[#s.left + 1] = {id = id, job = job, letter = letter}
    return true
  end

  for i, id in ipairs(ids) do
    local code, of, leaves = byte(codes, i), #receipts > 16 and i or 1, false
    local receipt, count, size, runs_alone, value
    leaves = code % RECORD >= PARTS
    if leaves then text = text + 1 end

    -- leave reads ARGV[text], so the texts behind that of what is left are read ahead of it.
    local record, result, mark, stale
    local ahead = text
    if code % RESULT >= RECORD then ahead, record = ahead + 1, ARGV[ahead + 1] end
    if code % MARK >= RESULT then ahead, result = ahead + 1, ARGV[ahead + 1] end
    if code % STALE >= MARK then ahead, mark = ahead + 1, ARGV[ahead + 1] end
    if code >= STALE then ahead, stale = ahead + 1, ARGV[ahead + 1] end
    local defers = not gone[id] and ((leaves or result) and full or not leaves and last)
    if not gone[id] and not defers then
      receipt, count, size, runs_alone = noted(id)
      if not receipt then value = call('HGET', CLAIMS, id) end
    end

    if defers then s.deferred[#s.deferred + 1] = i - 1
    elseif (receipt or value and sub(value, 1, 16)) ~= sub(receipts, 16 * of - 15, 16 * of) then
      if value then readable('c', id, claim_weight, value) end
      s.skipped[#s.skipped + 1] = i - 1
    elseif leaves and not leave(id, value, count, size) or result and not bounds.fits(bound, 1, #result) then
      full, s.deferred[#s.deferred + 1] = true, i - 1
    else
      gone[id] = true
      freed[#freed + 1] = id
      s.records[#freed], s.results[#freed] = record, result
      if mark then s.marks[#s.marks + 1], s.marks[#s.marks + 2] = id, mark end
      if stale then s.stale = s.stale + tonumber(stale) end
      if result then bounds.count(bound, 1, #result) end

      if receipt then s.notes[#s.notes + 1] = id end
      if code % FAILED >= PROCESSED then s.processed = s.processed + 1 end
      if code % PARTS >= FAILED then s.failed = s.failed + 1 end
      if s.alone > 0 and (runs_alone or value and claim_alone(value)) then s.alone = s.alone - 1 end
    end

    text = ahead
    if value and not leaves then removed = removed + #value end
    last = removed > MOST_REMOVED
  end

  s.last = text
  return s
end

-- begun_value returns a stored claim as it is once it has begun, with the given receipt.
local function begun_value(value, receipt) return receipt .. char(1) .. sub(value, 18) end

-- without returns a stored claim without the payload at a position, and the bytes that the payload
-- had, as packed.without does. It fails if the claim can't be read that far.
local function without(value, position, retry, recoveries)
  local from = claim_from(value) + 8
  local packed_job, ended = packed.without(value, from, position, retry, recoveries)
  return packed_job and sub(value, 1, from - 1) .. packed_job, ended
end

-- end_parts ends single payloads of claims. ARGV[from] is their number. Behind it are, for each,
-- its id, receipt, receipt afterwards, the payload's position, RetryCount and Recoveries
-- afterwards, and the record of a mark or ''. settled is the result of settle_claims, whose gone it reads and whose alone it
-- changes. cancels are the cancels of the shard as id, value, ..., whose receipts it changes. It
-- returns
--   claims: the values to be stored by id
--   size: how many bytes they have, which bounds the claims that change in one turn
--   notes: by id the notes of these claims, or false for a note to be removed
--   marks: ids and records of marks in turn, and marked: whether a part has one, also one that is
--     skipped
--   skipped: the positions of parts whose claim is absent, has no such payload or no other one, or
--     is too large to write in this turn
--   last: the index of the last ARGV that is about parts
local function end_parts(from, settled, cancels)
  local changed = {claims = {}, size = 0, notes = {}, marks = {}, skipped = {}, last = from + 7 * ARGV[from]}
  local claims, weights = changed.claims, {}

  -- weigh returns the number of payloads of a claim and their bytes. The note of a large claim has
  -- both.
  local function weigh(id, value)
    if weights[id] then return unpack(weights[id]) end
    local receipt, count, size = noted(id)
    if receipt then return count, size end
    return readable('c', id, claim_weight, value)
  end

  -- store keeps a claim that has lost a payload, its note and its cancel.
  local function store(id, value, after, was_alone)
    claims[id] = value

    local alone = claim_alone(value)
    if was_alone and not alone then settled.alone = settled.alone - 1 end
    if #value > NOTED then changed.notes[id] = note(after, #value, weights[id][1], weights[id][2], alone)
    elseif changed.notes[id] or noted(id) then changed.notes[id] = false end

    for i = 1, #cancels, 2 do
      if cancels[i] == id then
        cancels[i + 1] = after .. sub(cancels[i + 1], 17)
        plan.hset(CANCELS, id, cancels[i + 1])
      end
    end
  end

  for i = from + 1, changed.last, 7 do
    local id, before, after = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local fits = not settled.gone[id] and changed.size < bounds.most_bytes
    local value = fits and (claims[id] or call('HGET', CLAIMS, id))
    local receipt = value and sub(value, 1, 16)
    changed.marked = changed.marked or ARGV[i + 6] ~= ''

    if receipt == before then
      changed.size = changed.size + #value
      local count, size = weigh(id, value)
      local left, ended = readable('c', id, without, value, tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]))
      if left then
        weights[id] = {count - 1, size - ended}
        store(id, begun_value(left, after), after, claim_alone(value))
        if ARGV[i + 6] ~= '' then changed.marks[#changed.marks + 1], changed.marks[#changed.marks + 2] = id, ARGV[i + 6] end
      end
      receipt = left and after
    elseif receipt == after then -- it was applied before
      changed.size = changed.size + #value
      claims[id] = begun_value(value, after)
    end

    if receipt ~= after then changed.skipped[#changed.skipped + 1] = (i - from - 1) / 7 end
  end
  return changed
end

-- begin_claims marks the claims as begun that ARGV names from the index from on; gone are the ids
-- whose claims end, and changed is the result of end_parts, to whose claims it adds. It returns the
-- positions of those whose claim is absent, or is too large to write in this turn.
local function begin_claims(from, gone, changed)
  local not_begun = {}
  for i = from, #ARGV, 2 do
    local id = ARGV[i]
    local value = changed.claims[id]
    local receipt = not value and noted(id)
    local ours = not gone[id] and (not receipt or receipt == ARGV[i + 1])
    if ours and not value and changed.size < bounds.most_bytes then
      value = call('HGET', CLAIMS, id)
      changed.size = changed.size + (value and #value or 0)
    end

    if ours and value and sub(value, 1, 16) == ARGV[i + 1] then
      changed.claims[id] = begun_value(value, ARGV[i + 1])
    else not_begun[#not_begun + 1] = (i - from) / 2 end
  end
  return not_begun
end

-- merge_left merges the payloads that ended claims leave with the stored jobs and dead letters of
-- their ids. It returns the changed items of queued jobs by id, and the list of changed dead
-- letters.
local function merge_left(left)
  local moved, changed, ids, dead_ids = {}, {}, {}, {}
  if #left == 0 then return moved, changed end

  for i, x in ipairs(left) do
    ids[i] = x.id
    if x.letter then dead_ids[#dead_ids + 1] = x.id end
  end

  local jobs, dead = queue.load(ids, fetch('HMGET', JOBS, ids)), morgue.load(dead_ids, fetch('HMGET', DEAD, dead_ids))
  for _, x in ipairs(left) do
    local id, job, item = x.id, x.job, jobs[x.id]
    if x.letter then changed[#changed + 1] = morgue.add(dead, id, x.letter) end

    if #job.list > 0 and item then
      local there = item.job
      local awaits = job.awaits and there.first ~= job.first -- core.PutBack.Merge
      there.at = awaits and math.min(there.at, job.at) or job.at
      there.retry, there.slot, there.failures = job.retry, job.slot, job.failures
      there.tags = unite_tags(there.tags, job.tags)
      there.recoveries, there.first = math.max(there.recoveries, job.recoveries), math.min(there.first, job.first)
      items.unite(item, job.list)
    elseif #job.list > 0 then
      item = queue.item(id, job)
      items.bound(item)
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
