-- What is to be written: for each key what comes and what goes, and whole keys.
local hsets, zadds, hdels, zrems, unlinked = {}, {}, {}, {}, {}

local function plan(lists, key, a, b)
  local l = lists[key]
  if not l then lists[key] = {a, b} return end
  l[#l + 1] = a
  if b then l[#l + 1] = b end
end
local function hset(key, field, value) plan(hsets, key, field, value) end
local function zadd(key, score, member) plan(zadds, key, score, member) end
local function hdel(key, field) plan(hdels, key, field) end
local function zrem(key, member) plan(zrems, key, member) end

local function carry(command, lists)
  for key, l in pairs(lists) do
    for i = 1, #l, 1000 do call(command, key, unpack(l, i, math.min(i + 999, #l))) end
  end
end
local function write()
  carry('HSET', hsets)
  carry('ZADD', zadds)
  carry('HDEL', hdels)
  carry('ZREM', zrems)
  for _, key in ipairs(unlinked) do call('UNLINK', key) end
end

-- wake tells those who wait for the shard. It comes last: that a user may not
-- publish must not undo what is written.
local function wake() redis.pcall('SPUBLISH', base .. 'wake', '') end
