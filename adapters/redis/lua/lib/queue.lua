-- The queued jobs of a shard, as items: ready, or parked while their id is claimed.
-- Uses: META, LEASE, JOBS, METAS, PAYLOADS, READY, PARKED, BYID, RTIME, RID, RCOUNT, MAX_INSTANT,
--   call, fetch, plan, missing, readable, packed, items.
-- Defines: queue.

local queue
do
  local area = {hash = JOBS, metas = METAS, sets = PAYLOADS, place = 'q', encode = packed.encode}

  -- item returns the item of a job that is not stored yet.
  local function item(id, job) return {id = id, area = area, job = job} end

  -- stored returns the item of a packed job that is in place, READY or PARKED, since at.
  local function stored(id, packed_job, at, place)
    local job = readable('q', id, packed.decode, packed_job, at)
    if not at then missing('q', id, 'no list has it') end
    return {id = id, area = area, job = job, old = {at = at, place = place, retry = job.retry, many = job.many}}
  end

  -- load returns the items of those ids that have a packed job in packed_jobs, by id. If a job
  -- can't be read, or is in no list, the script fails, or leaves it out if lenient is set.
  local function load(ids, packed_jobs, lenient)
    local jobs, found = {}, {}
    for i, id in ipairs(ids) do if packed_jobs[i] then found[#found + 1] = id end end

    local ready, parked = fetch('ZMSCORE', READY, found), fetch('ZMSCORE', PARKED, found)
    local k = 0
    for i, id in ipairs(ids) do
      if packed_jobs[i] then
        k = k + 1
        local at = tonumber(ready[k] or parked[k])
        local read = not lenient or at and packed.decoded(packed.decode, packed_jobs[i], 0)
        jobs[id] = read and stored(id, packed_jobs[i], at, ready[k] and READY or PARKED) or nil
      end
    end
    return jobs
  end

  -- unlist plans to remove a job from every list but that of its place.
  local function unlist(id, retry, index)
    if index then plan.zrem(BYID, id) end
    if retry >= 0 then plan.zrem(RTIME, id); plan.zrem(RID, id); plan.zrem(RCOUNT, id) end
  end

  -- note_early plans to note that the script stores a job that was first pushed after its
  -- PerformAt. Until a job is due after that push, the one that has waited longest may not be the
  -- first.
  local noted
  local function note_early(first)
    if not noted then
      call('EXISTS', META, LEASE) -- fails here if another server has one of them
      noted = tonumber(call('HGET', LEASE, 'early') or 0)
    end
    if first > noted then
      noted = first
      plan.hset(LEASE, 'early', string.format('%.0f', first))
    end
  end

  -- store plans to store a job in a place, READY or PARKED.
  local function store(item, place, index)
    local id, job, old, at = item.id, item.job, item.old, string.format('%d', item.job.at) -- numbers would be printed digit by digit
    items.store(item)
    if job.at < job.first then note_early(job.first) end
    if not old or old.at ~= job.at or old.place ~= place then plan.zadd(place, at, id) end
    if old and old.place ~= place then plan.zrem(old.place, id) end
    if index and not old then plan.zadd(BYID, '0', id) end

    if job.retry < 0 then unlist(id, old and old.retry or -1, false)
    elseif not old or old.at ~= job.at or old.retry ~= job.retry then
      plan.zadd(RTIME, at, id)
      plan.zadd(RID, '0', id)
      plan.zadd(RCOUNT, string.format('%d', job.retry), id)
    end
  end

  -- is_held reports whether a job is held: it has failed, and its time is the last instant.
  local function is_held(job) return job.retry >= 0 and job.at >= MAX_INSTANT end

  -- store_rest plans to store what an operator has left of a job whose first payload he removed.
  local function store_rest(item, now, index)
    local job = item.job
    if job.slot ~= '' then job.slot, job.at = '', math.min(job.at, now) end
    if job.retry >= 0 then job.retry, job.recoveries, job.at = -1, 0, math.min(job.at, now) end
    store(item, item.old.place, index)
  end

  -- remove plans to remove a stored job.
  local function remove(item, index)
    items.remove(item)
    plan.zrem(item.old.place, item.id)
    unlist(item.id, item.old.retry, index)
  end

  -- leave plans to store what a claim of an item's first payloads leaves of it. If there is a rest,
  -- it is parked with the state core.State.Rest.
  local function leave(item, claimed, rest, index)
    local job = item.job
    items.leave(item, claimed, true)
    if rest then
      job.retry, job.recoveries, job.slot = -1, math.min(job.recoveries, 1), ''
      store(item, PARKED, index)
    elseif item.old then remove(item, index) end
  end

  queue = {item = item, stored = stored, load = load, is_held = is_held, store = store, note_early = note_early, store_rest = store_rest, leave = leave, remove = remove}
end
