-- The writes of a script. It plans all of them before it makes the first.
-- Uses: call.
-- Defines: plan.

local plan
do
  local hsets, zadds, hdels, zrems, cuts, counted = {}, {}, {}, {}, {}, {} -- by key
  local renamed, unlinked = {}, {} -- lists of keys; renamed has the old and the new ones in turn

  local function add(lists, key, a, b)
    local l = lists[key]
    if not l then lists[key] = {a, b} return end
    l[#l + 1] = a
    if b then l[#l + 1] = b end
  end

  local function hset(key, field, value) add(hsets, key, field, value) end
  local function zadd(key, score, member) add(zadds, key, score, member) end
  local function hdel(key, field) add(hdels, key, field) end
  local function zrem(key, member) add(zrems, key, member) end
  local function unlink(key) unlinked[#unlinked + 1] = key end

  -- rename plans that a key gets the name of another, which is absent.
  local function rename(key, to)
    renamed[#renamed + 1] = key
    renamed[#renamed + 1] = to
  end

  -- cut plans to remove the n lowest members of a sorted set that nothing is added to.
  local function cut(key, n) cuts[key] = n end

  -- count plans to add 1 to a number in a hash, on top of what else is planned for it. It fails on
  -- a second field of one hash.
  local function count(key, field)
    if not counted[key] then counted[key] = {field, 0} end
    if counted[key][1] ~= field then error('plan.count: ' .. field .. ' is a second field of one hash', 0) end
    counted[key][2] = counted[key][2] + 1
  end

  -- hset_all plans all fields and values of a list, which a later hset adds to. It fails if hset
  -- has planned fields of the hash, which it would overwrite.
  local function hset_all(key, list)
    if hsets[key] then error('plan.hset_all: the hash has planned fields', 0) end
    hsets[key] = list
  end

  local function run(command, lists)
    for key, l in pairs(lists) do
      for i = 1, #l, 1000 do call(command, key, unpack(l, i, math.min(i + 999, #l))) end
    end
  end

  -- write makes the writes. Each key gains members before it loses some, so that none is empty in
  -- between: the server that a migrating slot leaves refuses a command on an absent key.
  local function write()
    run('HSET', hsets)
    run('ZADD', zadds)
    for i = 1, #renamed, 2 do call('RENAME', renamed[i], renamed[i + 1]) end
    run('HDEL', hdels)
    run('ZREM', zrems)
    for key, n in pairs(counted) do call('HINCRBY', key, unpack(n)) end
    for key, n in pairs(cuts) do call('ZREMRANGEBYRANK', key, 0, n - 1) end
    for _, key in ipairs(unlinked) do call('UNLINK', key) end
  end

  plan = {hset = hset, zadd = zadd, hdel = hdel, zrem = zrem, rename = rename, cut = cut, count = count, unlink = unlink, hset_all = hset_all,
    write = write}
end
