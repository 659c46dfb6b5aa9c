-- An item is the stored data of an id in the queue or in the morgue: a job or a dead letter.
-- Uses: META, LEASE, merge_rule, call, floor, fetch, precedes, bounds, plan, damaged, missing,
--   packed.
-- Defines: items.
--
-- An item has these fields:
--   id
--   area   where it is stored: hash, of the packed records; metas; sets, the beginning of the keys
--          of payload sets; place, its name for damaged; and encode, which packs a record
--   old    the stored value, or nil
--   job    the job or the dead letter to be stored, as lib/packed.lua has it
--   taken  with job.many, the payloads to be removed from the set; job.list has only those to be
--          added
--   known  with job.many, once the item is stored: how many payloads of job.list the set had before
--
-- A set may hold any number of payloads, so no function reads more of it than requested.

local items
do
  local function lower(p, q)
    if p.score ~= q.score then return p.score < q.score end
    return precedes(p.data, q.data)
  end

  -- sort sorts payloads, which are usually in order already.
  local function sort(payloads)
    for i = 2, #payloads do
      if not lower(payloads[i - 1], payloads[i]) then return table.sort(payloads, lower) end
    end
  end

  -- set_of and lowest_stored are below.
  local set_of, lowest_stored

  -- replaces reports whether a payload replaces one with equal bytes and another score.
  local function replaces(p, score)
    if merge_rule ~= 0 then return p.score > score end
    return p.score < score
  end

  -- exceeds reports whether an id may not have n payloads. Then the lowest are superseded.
  local function exceeds(n) return merge_rule > 0 and n > merge_rule end

  -- place returns where in a sorted list a payload belongs.
  local function place(list, p)
    local from, to = 1, #list + 1
    while from < to do
      local mid = floor((from + to) / 2)
      if lower(list[mid], p) then from = mid + 1 else to = mid end
    end
    return from
  end

  -- indexed returns the payloads of an item's list by their bytes.
  local function indexed(item)
    if not item.by then
      item.by = {}
      for _, p in ipairs(item.job.list) do item.by[p.data] = p end
    end
    return item.by
  end

  -- remove_stored has a payload leave the item's set.
  local function remove_stored(item, p)
    item.taken, item.gone, item.cut = item.taken or {}, item.gone or {}, nil
    item.taken[#item.taken + 1], item.gone[p.data] = p, true
  end

  -- return_stored has a payload stay in the item's set that was to leave it.
  local function return_stored(item, data)
    item.gone[data] = nil
    for i, p in ipairs(item.taken) do if p.data == data then return table.remove(item.taken, i) end end
  end

  -- supersede removes the lowest payload of an item, and counts it. It returns the bytes.
  local function supersede(item)
    local list, by = item.job.list, item.by
    local p, q = list[1], item.job.many and lowest_stored(item) or nil
    if q and (not p or lower(q, p)) then p = q else
      table.remove(list, 1)
      by[p.data] = nil
    end

    if p == q or p.stored then remove_stored(item, p) end
    item.total = item.total - 1
    call('EXISTS', LEASE, META) -- fails if another server has one of them
    plan.count(LEASE, 'superseded')
    return p.data
  end

  -- merge adds payloads to the item's by the queue's merge rule. Among payloads with equal bytes
  -- and equal scores the existing one stays. It returns how many the item did not have, whether the
  -- item has changed, and how many were superseded at once. It sorts the item's list, and reads few
  -- of the payloads of a set.
  local function merge(item, coming)
    local added, changed, own, list, by, many = 0, false, 0, item.job.list, indexed(item), item.job.many
    if not item.total then
      sort(list)
      item.total = many and call('ZCARD', set_of(item)) - #(item.taken or {}) + #list or #list
    end

    for _, p in ipairs(coming) do
      local q, score, dropped = by[p.data], nil, nil
      if not q and many and not (item.gone and item.gone[p.data]) then score = tonumber(call('ZSCORE', set_of(item), p.data) or nil) end

      if q and replaces(p, q.score) then
        table.remove(list, place(list, q))
        q.score, q.meta, changed = p.score, p.meta, true
        table.insert(list, place(list, q), q)
      elseif not q and (not score or replaces(p, score)) then
        q = {score = p.score, data = p.data, meta = p.meta, stored = score ~= nil}
        if many and item.gone and item.gone[p.data] then
          return_stored(item, p.data)
          q.stored = true
        end
        table.insert(list, place(list, q), q)
        by[p.data] = q
        if not score then
          item.total = item.total + 1
          if exceeds(item.total) then dropped = supersede(item) end
        end
        if dropped == p.data then own = own + 1 else changed = true end
        if not score and dropped ~= p.data then added = added + 1 end
      end

      if p.meta ~= '' then item.job.annotated = true end
    end
    return added, changed, own
  end

  -- unite is merge without reads of a set if the rule is the default. Then it returns only how many
  -- payloads the item did not have, and that includes those of the item's set.
  local function unite(item, coming)
    if merge_rule ~= 0 then return merge(item, coming) end

    local added, there, by = 0, item.job.list, indexed(item)
    for _, p in ipairs(coming) do
      local q = by[p.data]
      if not q then
        q = {score = p.score, data = p.data, meta = p.meta}
        there[#there + 1], by[p.data], added = q, q, added + 1
      elseif p.score < q.score then
        q.score, q.meta = p.score, p.meta
      end
      if p.meta ~= '' then item.job.annotated = true end
    end
    return added
  end

  -- bound removes the payloads of a new item that the merge rule does not keep.
  local function bound(item)
    local coming = item.job.list
    if not exceeds(#coming) then return end
    item.job.list, item.by = {}, nil
    merge(item, coming)
  end

  -- set_of returns the key of an item's payload set. It fails if another server has the set. It
  -- also fails if the record and the set contradict each other: one of them exists without the
  -- other, or the key has another type.
  set_of = function(item)
    if item.set then return item.set end
    local key, place, told = item.area.sets .. item.id, item.area.place, item.old and item.old.many or false

    local there = call('EXISTS', key, META) == 2
    if told and not there then missing(place, item.id, 'its payloads are lost') end
    if there and not told then missing(place, item.id, 'its record does not tell of its payloads') end
    if there and type(redis.pcall('ZCARD', key)) ~= 'number' then damaged(place, item.id, 'its payloads are no sorted set') end
    item.set = key
    return key
  end

  -- metas_of returns the Metas of payloads of a set.
  local function metas_of(item, datas)
    if not item.job.annotated then return {} end
    local fields = {}
    for i, data in ipairs(datas) do fields[i] = item.id .. '\0' .. data end
    return fetch('HMGET', item.area.metas, fields)
  end

  -- some_of_set returns payloads of an item's set, in order, and the same by data: n from a rank
  -- on, or as many as it takes to exceed size bytes. The sizes of the next ones are unknown, so it
  -- reads few at a time.
  local function some_of_set(item, key, rank, n, size)
    local all, by, bytes, piece, MOST = {}, {}, 0, 4, 16
    while #all < n and bytes <= size do
      local read, datas = #all, {}
      piece = math.min(piece, n - read)
      local stored = call('ZRANGE', key, rank + read, rank + read + piece - 1, 'WITHSCORES')
      for i = 1, #stored, 2 do datas[#datas + 1] = stored[i] end

      local metas = metas_of(item, datas)
      for i, data in ipairs(datas) do
        local p = {score = tonumber(stored[2 * i]), data = data, meta = metas[i] or ''}
        all[read + i], by[data], bytes = p, p, bytes + #data
      end

      if #datas < piece then break end
      piece = math.min(MOST, floor((size - bytes) * #all / (bytes + 1)) + 1) -- if they are like those before
    end
    return all, by
  end

  -- lowest_stored returns the lowest payload of an item's set that the item's list does not have
  -- and that does not leave the set, or nil. It reads a few at a time.
  lowest_stored = function(item)
    local l = item.low or {rank = 0, some = {}, at = 1}
    item.low = l
    while true do
      if l.at > #l.some then
        l.some, l.at = call('ZRANGE', set_of(item), l.rank, l.rank + 3, 'WITHSCORES'), 1
        if #l.some == 0 then return nil end
        l.rank = l.rank + 4
      end

      local data = l.some[l.at]
      if not item.by[data] and not (item.gone and item.gone[data]) then
        return {score = tonumber(l.some[l.at + 1]), data = data, meta = ''}
      end
      l.at = l.at + 2
    end
  end

  -- first_by_rule is first for an item whose set payloads leave or rise in.
  local function first_by_rule(item, n, size)
    local some, total, list = {}, item.total, item.job.list
    local beside = #(item.taken or {}) + #list
    for _, p in ipairs(item.taken or {}) do size = size + #p.data end
    for _, p in ipairs(list) do size = size + #p.data end

    for _, p in ipairs((some_of_set(item, set_of(item), 0, n + beside, size))) do
      if not item.by[p.data] and not (item.gone and item.gone[p.data]) then some[#some + 1] = p end
    end
    for _, p in ipairs(list) do some[#some + 1] = p end

    sort(some)
    for i = #some, n + 1, -1 do some[i] = nil end
    return some, total
  end

  -- first returns the n lowest payloads of an item, in order, and how many it has. If the lowest
  -- exceed size bytes, it may return fewer, which also exceed them.
  local function first(item, n, size)
    if item.total and item.job.many then return first_by_rule(item, n, size) end
    local job, all, by, total, key = item.job, {}, {}, #item.job.list, nil
    if job.many then
      key = set_of(item)
      all, by = some_of_set(item, key, 0, n, size)
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

    sort(all)
    for i = #all, n + 1, -1 do all[i] = nil end
    return all, total
  end

  -- behind returns how many payloads of a stored item have a score below the given one, or are
  -- among the first skip of that score. The latter count is 0 if skip is 0.
  local function behind(item, score, skip)
    if skip == 0 then return 0 end

    if item.job.many then
      return call('ZCOUNT', set_of(item), '-inf', '(' .. score) + math.min(skip, call('ZCOUNT', set_of(item), score, score))
    end
    local lower, same = 0, 0
    for _, p in ipairs(item.job.list) do
      if p.score < tonumber(score) then lower = lower + 1 elseif p.score == tonumber(score) then same = same + 1 end
    end
    return lower + math.min(skip, same)
  end

  -- page returns n payloads of a stored item, in order, from a rank on, or as many as it takes to
  -- exceed size bytes. It also returns how many the item has.
  local function page(item, rank, n, size)
    if item.job.many then
      local key = set_of(item)
      return some_of_set(item, key, rank, n, size), call('ZCARD', key)
    end
    local some = {}
    sort(item.job.list)
    for i = rank + 1, math.min(rank + n, #item.job.list) do some[#some + 1] = item.job.list[i] end
    return some, #item.job.list
  end

  -- leave removes payloads from an item. lowest is true if they are the first of those that first
  -- has returned.
  local function leave(item, payloads, lowest)
    local taken, gone, left = item.taken or {}, item.gone or {}, {}
    item.cut = lowest and #taken == 0 and #item.job.list == 0 and #payloads > 0 and #payloads or nil
    for _, p in ipairs(payloads) do taken[#taken + 1], gone[p.data] = p, true end
    for _, p in ipairs(item.job.list) do if not gone[p.data] then left[#left + 1] = p end end
    item.job.list, item.taken, item.gone = left, taken, gone
  end

  -- take removes the lowest payloads from a stored item, as many as a bound allows, and counts
  -- them. It returns them, in order, and whether they are all.
  local function take(item, bound)
    local n, size = bounds.left(bound)
    if n == 0 then return {}, false end
    local part, all, total = {}, first(item, n, size)

    for _, p in ipairs(all) do
      if not bounds.fits(bound, 1, #p.data) then break end
      bounds.count(bound, 1, #p.data)
      part[#part + 1] = p
    end

    leave(item, part, true)
    return part, #part == total
  end

  -- take_first removes the lowest payload from a stored item if its Data is the given one and a
  -- bound allows it. It returns the payload in a list and whether the item has no other one. Else
  -- it returns nil, and whether that is because of the Data.
  local function take_first(item, data, bound)
    local all, total = first(item, 1, 0)
    if not all[1] or all[1].data ~= data then return nil, true end
    if not bounds.fits(bound, 1, #data) then return nil, false end

    bounds.count(bound, 1, #data)
    leave(item, all, true)
    return all, total == 1
  end

  -- lowest returns the lowest of the named payloads of a stored item, or of all, or nil if there is
  -- none.
  local function lowest(item, names)
    if not names then return first(item, 1, 0)[1] end
    local low
    if item.job.many then
      for _, score in ipairs(fetch('ZMSCORE', set_of(item), names)) do
        score = tonumber(score or nil)
        if score and (not low or score < low.score) then low = {score = score} end
      end
      return low
    end

    local named = {}
    for _, data in ipairs(names) do named[data] = true end
    for _, p in ipairs(item.job.list) do
      if named[p.data] and (not low or p.score < low.score) then low = p end
    end
    return low
  end

  -- take_named is take for the named payloads of a stored item; if scores are wanted, for those
  -- that the item has with these.
  local function take_named(item, names, bound, wanted)
    local job, found, part, named, gone = item.job, {}, {}, {}, item.gone or {}
    if job.many then
      local key = set_of(item)
      local scores, metas = fetch('ZMSCORE', key, names), metas_of(item, names)
      for i, data in ipairs(names) do
        if scores[i] and not named[data] and not gone[data] and (not wanted or tonumber(scores[i]) == wanted[i]) then
          named[data], found[#found + 1] = true, {score = tonumber(scores[i]), data = data, meta = metas[i] or ''}
        end
      end
    else
      for i, data in ipairs(names) do
        named[data] = named[data] or {}
        if wanted then named[data][wanted[i]] = true end
      end
      for _, p in ipairs(job.list) do
        if named[p.data] and (not wanted or named[p.data][p.score]) then found[#found + 1] = p end
      end
    end

    sort(found)
    for _, p in ipairs(found) do
      if not bounds.fits(bound, 1, #p.data) then break end
      bounds.count(bound, 1, #p.data)
      part[#part + 1] = p
    end

    leave(item, part, false)
    return part, #part == #found
  end

  -- count returns how many payloads a stored item has, also after take and take_named.
  local function count(item)
    if not item.job.many then return #item.job.list end
    return call('ZCARD', set_of(item)) - #(item.taken or {})
  end

  -- store_set plans to add an item's payloads to its set, and to remove those of item.taken from
  -- it.
  local function store_set(item)
    local job, metas, datas, key = item.job, item.area.metas, {}, set_of(item)
    for i, p in ipairs(job.list) do datas[i] = p.data end

    local scores = fetch('ZMSCORE', key, datas)
    item.known = 0

    for i, p in ipairs(job.list) do
      local there = tonumber(scores[i] or nil)
      if there and not item.total then item.known = item.known + 1 end
      if not there or replaces(p, there) then
        plan.zadd(key, p.score, p.data)
        if p.meta ~= '' then plan.hset(metas, item.id .. '\0' .. p.data, p.meta)
        elseif there and job.annotated then plan.hdel(metas, item.id .. '\0' .. p.data) end
      end
    end

    if item.cut then plan.cut(key, item.cut) end
    for _, p in ipairs(item.old and item.old.many and item.taken or {}) do
      if not item.cut then plan.zrem(key, p.data) end
      if job.annotated then plan.hdel(metas, item.id .. '\0' .. p.data) end
    end
  end

  -- store plans to store an item's packed job and payloads.
  local function store(item)
    local job = item.job
    if not job.many and not packed.fits(job.list) and #job.list > 1 then job.many = true end
    if job.many and not item.moved then store_set(item) end
    plan.hset(item.area.hash, item.id, item.area.encode(job))
  end

  -- goes_whole reports whether an item's payloads can be moved or removed as one: they are a set,
  -- have no Metas, and are not too many for the merge rule.
  local function goes_whole(item)
    if not item.job.many or item.job.annotated then return false end
    return not exceeds(call('ZCARD', set_of(item)))
  end

  -- move plans to rename the set of one item to that of another, which is not stored yet.
  local function move(from, to)
    local key = set_of(to)
    plan.rename(set_of(from), key)
    to.job.many, to.moved, from.moved = true, true, true
  end

  -- remove plans to remove an item's packed job and payloads. Payloads with Metas
  -- must have been taken.
  local function remove(item)
    plan.hdel(item.area.hash, item.id)
    if not item.old.many or item.moved then return end
    for _, p in ipairs(item.job.annotated and item.taken or {}) do plan.hdel(item.area.metas, item.id .. '\0' .. p.data) end
    plan.unlink(set_of(item))
  end

  items = {merge = merge, unite = unite, bound = bound, first = first, behind = behind, page = page, leave = leave, take = take, take_first = take_first, take_named = take_named, lowest = lowest, count = count, store = store,
    goes_whole = goes_whole, move = move, remove = remove}
end
