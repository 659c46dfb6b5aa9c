-- The second half of a turn: due jobs are claimed.
-- Uses: READY, PARKED, JOBS, BYID, CLAIMS, WIDE, MANY, ALONE, known_flags, damaged, missing, call,
--   byte, band, pack, precedes, reader, plan, packed, items, queue, NOTED, note.
-- Defines: claim_jobs.

-- candidates returns the ids of the jobs that may be claimed and their PerformAt, in the order in
-- which they are claimed: the first ready ones, and those that this turn has put back or freed. Of
-- jobs that are not due, it needs only the first: that is the head.
local function candidates(turn)
  local now, moved, waiting = turn.now, turn.moved, turn.waiting
  local ready, ids, times = call('ZRANGE', READY, 0, turn.want, 'WITHSCORES'), {}, {}
  for i = 1, #ready, 2 do
    ids[#ids + 1] = ready[i]
    times[#times + 1] = tonumber(ready[i + 1])
  end
  if not (next(moved) or next(waiting)) then return ids, times end

  local at, soonest = {}, nil
  for i, id in ipairs(ids) do at[id] = times[i] end
  for _, id in ipairs(turn.freed) do
    local time = moved[id] and moved[id].job.at or waiting[id]
    if time and time <= now then at[id], ids[#ids + 1] = time, id
    elseif time and (not soonest or time < at[soonest] or time == at[soonest] and precedes(id, soonest)) then
      at[id], soonest = time, id
    end
  end
  if soonest then ids[#ids + 1] = soonest end
  table.sort(ids, function(a, b)
    if at[a] ~= at[b] then return at[a] < at[b] end
    return precedes(a, b)
  end)
  for i, id in ipairs(ids) do times[i] = at[id] end
  return ids, times
end

-- claim_jobs claims due jobs up to turn.want and the turn's budgets. turn has now, want, per_job,
-- bytes, receipt, claimer, index, paused, alone (how many claims run alone), carried, the bound of
-- the turn's other claims, and freed, moved and waiting, which come from this turn's settlements.
-- It returns
--   list: the claims as id and claim as it is stored, and replied: Lua hashes each byte of each
--     text that it makes, so a claim is made once
--   chosen: the ids as a set
--   count: how many there are
--   notes: by id the notes of the claims that get one
--   whole: the ids of jobs that are claimed as they are packed
--   alone: how many claims run alone now
--   head: PerformAt of the first job left, or -1 if it can't be claimed
-- It plans the writes of the jobs that are claimed in part or have several payloads, and takes the
-- claimed ones out of turn.waiting.
local function claim_jobs(turn)
  local now, want, moved, waiting, index = turn.now, turn.want, turn.moved, turn.waiting, turn.index
  local ids, times = candidates(turn)
  local MOST_PAYLOADS = 1000
  local list, chosen, notes, whole, taken, payloads, size, cut = {}, {}, {}, {}, 0, turn.carried.payloads, turn.carried.bytes, false
  local alone, prefix = turn.alone, turn.receipt .. pack('>I8', turn.now) .. turn.claimer -- not begun: its byte is that of since

  local packed_at = reader(JOBS, ids)

  -- flags_of returns the flags of candidate k as it is stored.
  local function flags_of(k)
    local packed_job = packed_at(k)
    if not packed_job then missing('q', ids[k], 'its record is lost') end
    local flags = byte(packed_job)
    if not flags or not known_flags(flags) then damaged('q', ids[k], 'its flags are unknown') end
    return flags
  end

  -- runs_alone reports whether candidate k was recovered twice.
  local function runs_alone(k)
    local item = moved[ids[k]]
    if item then return item.job.recoveries >= 2 end
    return band(flags_of(k), ALONE) > 0
  end

  -- nothing_claimed reports whether no job of the shard is claimed.
  local function nothing_claimed() return taken == 0 and call('HLEN', CLAIMS) == #turn.freed end

  -- claim_part claims as many payloads of candidate k as fit, and returns the claim in its stored
  -- form, or nil if no payload fits.
  local function claim_part(k, item)
    local id = ids[k]
    item = item or queue.stored(id, packed_at(k), times[k], waiting[id] and PARKED or READY)
    local all, total = items.first(item, math.max(1, math.min(turn.per_job, MOST_PAYLOADS - payloads)), math.max(0, turn.bytes - size))

    local got = {}
    for _, p in ipairs(all) do
      if payloads > 0 and (payloads >= MOST_PAYLOADS or size + #p.data > turn.bytes) then break end
      got[#got + 1] = p
      payloads, size = payloads + 1, size + #p.data
    end
    if #got == 0 then return end

    local claim = packed.encode(item.job, got, prefix .. pack('>I8', times[k]))
    cut = #got < total
    queue.leave(item, got, cut, index)
    return claim
  end

  local k = 1
  while not turn.paused and not cut and taken < want and ids[k] and times[k] <= now do
    local id, claim, payloads_before, size_before = ids[k], nil, payloads, size
    local item, single = moved[id], runs_alone(k)
    if alone > 0 or single and not nothing_claimed() then break end

    local flags = item and MANY or flags_of(k)
    if flags <= WIDE then -- a single payload and nothing else: it moves unchanged
      local packed_job = packed_at(k)
      local n = #packed_job - 8 - flags
      if n < 0 then damaged('q', id, 'it is cut short') end
      if flags > 0 and byte(packed_job, 2) % 128 == 127 and byte(packed_job, 3) >= 240 then damaged('q', id, 'a score is no number') end
      if payloads > 0 and (payloads >= MOST_PAYLOADS or size + n > turn.bytes) then break end
      payloads, size, claim = payloads + 1, size + n, prefix .. pack('>I8', times[k]) .. packed_job
      whole[#whole + 1] = id
      if waiting[id] then plan.zrem(PARKED, id) else plan.zrem(READY, id) end
      if index then plan.zrem(BYID, id) end
    else
      claim = claim_part(k, item)
      if not claim then break end
    end

    list[#list + 1] = id
    list[#list + 1] = claim
    if #claim > NOTED then notes[id] = note(turn.receipt, #claim, payloads - payloads_before, size - size_before, single) end
    chosen[id], waiting[id] = true, nil
    taken, k = taken + 1, k + 1
    if single then alone = alone + 1 end
  end

  local head = -1
  if ids[k] and not turn.paused and alone == 0 and not (runs_alone(k) and not nothing_claimed()) then head = times[k] end
  return {list = list, chosen = chosen, notes = notes, count = taken, whole = whole, alone = alone, head = head}
end
