-- What pushed entries change in the queue of a shard.
-- Uses: READY, PARKED, CLAIMS, BYID, JOBS, WIDE, FIRST, call, sub, byte, char, pack, instant, plan,
--   unite_tags, packed, items, queue.
-- Defines: pushes.

local pushes
do
  -- add_times adds to lists when entries are due, and which of them merge by earliest. terms has
  -- @instant or +delay of each entry, or !delay of one that merges by earliest.
  local function add_times(terms, now, times, urgent)
    for how, n in string.gmatch(terms, '([@+!])(-?%d+)') do
      times[#times + 1] = how == '@' and tonumber(n) or instant(now + n)
      urgent[#times] = how == '!'
    end
  end

  -- merge changes the state of a queued job as a push for it does (rules 2).
  local function merge(job, now, coming, by, limit, tags)
    job.first, job.tags = math.min(job.first, now), unite_tags(job.tags, tags)
    if job.retry >= 0 or job.slot ~= '' or (by or '0') == '0' then return end
    if by == '1' then job.at = math.min(job.at, coming)
    else job.at = math.max(job.at, math.min(coming, instant(job.first + limit))) end
  end

  -- with_first returns the packed job as one that is not due now: FirstPush follows the score.
  local function with_first(packed_job, now)
    local flags = byte(packed_job)
    local head = flags % 4 == WIDE and 9 or 8
    return char(flags + FIRST) .. sub(packed_job, 2, head) .. pack('>I8', now) .. sub(packed_job, head + 1)
  end

  -- store plans to store entries in their order. e has lists of them: ids; jobs, each packed as one
  -- that is due now; times, where one is not due now; urgent; and the push's rule and limit, nil if
  -- it is keep. queued has the packed jobs of their ids, false or nil for an id that is not queued.
  -- It returns how many have made jobs, how many have not, how many of these have added a payload,
  -- how many were superseded at once, and whether the shard is due earlier.
  local function store(e, queued, now, index)
    local ids, times, urgent = e.ids, e.times, e.urgent
    local new, merged, old, old_jobs, position = {}, {}, {}, {}, {} -- position is the first entry of an id
    for n, id in ipairs(ids) do
      local job = queued[id]
      if position[id] or job then merged[#merged + 1] = n else new[#new + 1] = id end
      if not position[id] then
        position[id] = n
        if job then old[#old + 1], old_jobs[#old_jobs + 1] = id, job end
      end
    end

    -- A job whose id is claimed is parked.
    local claimed = {}
    if #new > 0 and call('HLEN', CLAIMS) > 0 then
      for _, id in ipairs(new) do claimed[id] = call('HEXISTS', CLAIMS, id) == 1 end
    end

    local added, superseded = 0, 0
    local there = #old > 0 and queue.load(old, old_jobs) or {}
    for _, n in ipairs(merged) do
      local id = ids[n]
      local item, first = there[id], position[id]
      if not item then -- the second of an id that was not queued
        item = queue.item(id, packed.decode(e.jobs[first], times[first] or now))
        item.job.first = now
        there[id] = item
      end

      local pushed = packed.decode(e.jobs[n], now)
      merge(item.job, now, times[n] or now, urgent[n] and '1' or e.rule, e.limit, pushed.tags)
      local more, _, own = items.unite(item, pushed.list)
      added, superseded = added + more, superseded + (own or 0)
    end

    local early -- whether a job that is stored as it came is due before its first push
    local soonest, due = math.huge, string.format('%.0f', now)
    for _, id in ipairs(new) do
      local item, n = there[id], position[id]
      local place, at = claimed[id] and PARKED or READY, times[n] or now
      if item then
        queue.store(item, place, index)
        at = item.job.at
      else
        plan.hset(JOBS, id, at == now and e.jobs[n] or with_first(e.jobs[n], now))
        plan.zadd(place, at == now and due or at, id)
        early = early or at < now
        if index then plan.zadd(BYID, 0, id) end
      end
      if at < soonest and place == READY then soonest = at end
    end

    for _, item in pairs(there) do
      if item.old then
        queue.store(item, item.old.place, index)
        added = added - (item.known or 0)
        if item.old.place == READY and item.job.at < soonest then soonest = item.job.at end
      end
    end

    local head = soonest < math.huge and call('ZRANGE', READY, 0, 0, 'WITHSCORES') or {}
    if early then queue.note_early(now) end
    return #new, #merged, added, superseded, soonest < tonumber(head[2] or math.huge)
  end

  pushes = {add_times = add_times, store = store}
end
