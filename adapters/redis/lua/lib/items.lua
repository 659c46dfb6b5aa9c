-- An item is what is stored of an id, in the queue or in the morgue.
-- Uses: META, call, fetch, precedes, plan, packed.
-- Defines: items.
--
-- Its fields are id; area, the keys it is stored in (hash of packed jobs, metas, and sets, what
-- the keys of payload sets begin with); old, what is stored now, nil if nothing is; and
-- job, what is to be stored. With job.many, job.list is only what is to be added to the
-- set, and taken what is to leave it.

local items
do
  local function lower(p, q)
    if p.score ~= q.score then return p.score < q.score end
    return precedes(p.data, q.data)
  end

  -- unite adds payloads to the item's. Of those with equal bytes the smaller score
  -- stays, and on a tie the one that was there.
  local function unite(item, coming)
    local there, by = item.job.list, item.by
    if not by then
      by = {}
      for _, p in ipairs(there) do by[p.data] = p end
      item.by = by
    end
    for _, p in ipairs(coming) do
      local q = by[p.data]
      if not q then
        q = {score = p.score, data = p.data, meta = p.meta}
        there[#there + 1], by[p.data] = q, q
      elseif p.score < q.score then
        q.score, q.meta = p.score, p.meta
      end
      if p.meta ~= '' then item.job.tagged = true end
    end
  end

  -- check_local fails if another server has the key of a payload set.
  local function check_local(key) call('EXISTS', key, META) end

  -- first_of_set returns the n lowest payloads of an item's set, and the same by data.
  local function first_of_set(item, n)
    local key, all, by = item.area.sets .. item.id, {}, {}
    check_local(key)
    local stored, fields, metas = call('ZRANGE', key, 0, n - 1, 'WITHSCORES'), {}, {}
    if item.job.tagged then
      for i = 1, #stored, 2 do fields[#fields + 1] = item.id .. '\0' .. stored[i] end
      metas = fetch('HMGET', item.area.metas, fields)
    end
    for i = 1, #stored, 2 do
      local p = {score = tonumber(stored[i + 1]), data = stored[i], meta = metas[(i + 1) / 2] or ''}
      all[#all + 1], by[p.data] = p, p
    end
    return all, by
  end

  -- first returns the n lowest payloads of an item, in order, and how many it has.
  local function first(item, n)
    local job, key, all, by, total = item.job, item.area.sets .. item.id, {}, {}, #item.job.list
    if job.many then
      all, by = first_of_set(item, n)
      total = call('ZCARD', key)
    end
    local datas = {}
    for i, p in ipairs(job.list) do datas[i] = p.data end
    local scores = job.many and fetch('ZMSCORE', key, datas) or {}
    for i, p in ipairs(job.list) do
      local there = tonumber(scores[i] or nil)
      if job.many and not there then total = total + 1 end
      if there and p.score < there and by[p.data] then
        by[p.data].score, by[p.data].meta = p.score, p.meta
      elseif not there or p.score < there then
        all[#all + 1] = p
      end
    end
    if not job.many or #job.list > 0 then table.sort(all, lower) end
    for i = #all, n + 1, -1 do all[i] = nil end
    return all, total
  end

  -- all returns all payloads of an item, in order.
  local function all(item) return (first(item, 2147483648)) end

  -- store_set plans to add an item's payloads to its set, and to take those of
  -- item.taken out of it.
  local function store_set(item)
    local job, key, metas, datas = item.job, item.area.sets .. item.id, item.area.metas, {}
    check_local(key)
    for i, p in ipairs(job.list) do datas[i] = p.data end
    local scores = fetch('ZMSCORE', key, datas)
    for i, p in ipairs(job.list) do
      local there = tonumber(scores[i] or nil)
      if not there or p.score < there then
        plan.zadd(key, p.score, p.data)
        if p.meta ~= '' then plan.hset(metas, item.id .. '\0' .. p.data, p.meta)
        elseif there and job.tagged then plan.hdel(metas, item.id .. '\0' .. p.data) end
      end
    end
    for _, p in ipairs(item.taken or {}) do
      plan.zrem(key, p.data)
      if job.tagged then plan.hdel(metas, item.id .. '\0' .. p.data) end
    end
  end

  -- store plans to store an item's packed job and payloads.
  local function store(item)
    local job = item.job
    if not job.many and not packed.fits(job.list) and #job.list > 1 then job.many = true end
    if job.many then store_set(item) end
    plan.hset(item.area.hash, item.id, packed.encode(job))
  end

  -- remove plans to remove an item's packed job and payloads.
  local function remove(item)
    plan.hdel(item.area.hash, item.id)
    if not item.old.many then return end
    local key = item.area.sets .. item.id
    check_local(key)
    if item.job.tagged then
      for _, data in ipairs(call('ZRANGE', key, 0, -1)) do plan.hdel(item.area.metas, item.id .. '\0' .. data) end
    end
    plan.unlink(key)
  end

  items = {unite = unite, first = first, all = all, store = store, remove = remove}
end
