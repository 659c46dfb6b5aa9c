-- The number of the shard's dead letters in each group, and each group's list by time.
-- Uses: META, GROUPS, GROUPED, call, pack, parse, plan.
-- Defines: groups.
--
-- GROUPS is a hash. For each group it has the count, and the earliest and the latest burial, of 8
-- bytes each. A script's changes are counted together: finish removes a group that they leave
-- empty.

local groups
do
  local MOST, OTHER = 1000, 'other' -- core.MaxGroups, core.OtherGroup
  local known, changed, asked, size = {}, {}, {}, nil -- by name; known is false for a group that does not exist

  -- find returns the stored count of a group, or nil. A count that can't be read is treated as
  -- absent: a recount corrects it.
  local function find(name)
    local g = known[name]
    if g == nil then
      local stored = call('HGET', GROUPS, name)
      g = false
      if stored and #stored == 24 then
        local n, first, last = parse('>I8I8I8', stored)
        g = {n = n, first = first, last = last}
      end
      known[name] = g
    end
    return g or nil
  end

  -- list returns the key of a group's list. It fails if another server has it.
  local function list(name)
    local key = GROUPED .. name
    if not asked[name] then asked[name] = call('EXISTS', key, META) end
    return key
  end

  local function leave(name)
    local g = find(name)
    if g and g.n > 0 then g.n, changed[name] = g.n - 1, true end
  end

  -- bury counts a burial, as core.Groups does, in the group with the given name. had is the dead
  -- letter's former group, or nil if it is new. It returns the name of the dead letter's present
  -- group.
  local function bury(had, name, at)
    local g = find(name)
    if not g and name ~= OTHER then
      size = size or call('HLEN', GROUPS)
      if size >= MOST then name, g = OTHER, find(OTHER) end
    end

    if not g then
      g = {n = 0, first = at, last = at}
      known[name], size = g, size and size + 1
    end

    g.n, g.first, g.last, changed[name] = g.n + 1, math.min(g.first, at), math.max(g.last, at), true
    if had then leave(had) end
    return name
  end

  -- finish plans to store what has changed.
  local function finish()
    for name in pairs(changed) do
      local g = known[name]
      if g.n > 0 then plan.hset(GROUPS, name, pack('>I8I8I8', g.n, g.first, g.last))
      else plan.hdel(GROUPS, name) end
    end
  end

  groups = {bury = bury, leave = leave, list = list, finish = finish}
end
