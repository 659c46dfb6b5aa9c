-- The dead letters of a shard, as items.
-- Uses: DEAD, DMETAS, DPAYLOADS, DTIME, DID, fetch, plan, missing, readable, unite_tags, packed,
--   items, groups.
-- Defines: morgue.

local morgue
do
  local area = {hash = DEAD, metas = DMETAS, sets = DPAYLOADS, place = 'd', encode = packed.encode_dead}

  -- load returns the items of those ids that have a packed dead letter in packed_jobs, by id. If a
  -- dead letter can't be read, or is in no list, the script fails, or leaves it out if lenient is
  -- set.
  local function load(ids, packed_jobs, lenient)
    local dead, times = {}, fetch('ZMSCORE', DTIME, ids)
    for i, id in ipairs(ids) do
      local at = tonumber(times[i])
      if packed_jobs[i] and not (lenient and not (at and packed.decoded(packed.decode_dead, packed_jobs[i], 0))) then
        local job = readable('d', id, packed.decode_dead, packed_jobs[i], at)
        if not at then missing('d', id, 'no list has it') end
        dead[id] = {id = id, area = area, job = job, old = {at = job.at, many = job.many, group = job.group}}
      end
    end
    return dead
  end

  -- open returns the item of the dead letter of an id in dead, after letter was added to it as by
  -- core.MergeDeadLetters, but for letter's payloads. If there is none, open adds one there.
  local function open(dead, id, letter)
    local item = dead[id] or {id = id, area = area}
    local former = item.job or packed.letter(letter.at)
    letter.list, letter.many, letter.annotated = former.list, former.many, former.annotated
    letter.tags = unite_tags(letter.tags, former.tags)
    letter.group = groups.bury(former.group, letter.group, letter.at)
    item.job, dead[id] = letter, item
    return item
  end

  -- add is open, and adds the payloads of letter. It plans nothing.
  local function add(dead, id, letter)
    local payloads = letter.list
    local item = open(dead, id, letter)
    items.unite(item, payloads)
    return item
  end

  -- store plans to store a dead letter.
  local function store(item)
    local id, job, old = item.id, item.job, item.old
    items.store(item)
    if not old or old.at ~= job.at then plan.zadd(DTIME, job.at, id) end
    if not old then plan.zadd(DID, 0, id) end
    if not old or old.at ~= job.at or old.group ~= job.group then plan.zadd(groups.list(job.group), job.at, id) end
    if old and old.group ~= job.group then plan.zrem(groups.list(old.group), id) end
  end

  -- remove plans to remove a stored dead letter.
  local function remove(item)
    items.remove(item)
    plan.zrem(DTIME, item.id)
    plan.zrem(DID, item.id)
    plan.zrem(groups.list(item.old.group), item.id)
    groups.leave(item.old.group)
  end

  morgue = {load = load, open = open, add = add, store = store, remove = remove}
end
