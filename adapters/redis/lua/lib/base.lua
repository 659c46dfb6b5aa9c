-- What the scripts of a shard share; Go puts it in front of each of them.
--
-- A script reads and checks, plans its writes with hset, zadd, hdel and zrem,
-- and ends with write(): an error before that leaves nothing behind. In write()
-- each key gains before it loses, so that no key is empty in between: while a slot
-- migrates, the server that it leaves refuses to touch an absent key.
--
-- The server that the slot goes to refuses nothing to a call that was sent on to it:
-- a key that has not come yet looks empty. Only of several keys in one command does
-- it tell that one is missing. So each key that is not in KEYS stands in an EXISTS
-- with another before it is read or written.

local call, sub, byte, char = redis.call, string.sub, string.byte, string.char
local pack, parse, band, floor = struct.pack, struct.unpack, bit.band, math.floor
local base = sub(KEYS[1], 1, -2)
local META, JOBS, READY, PARKED, CLAIMS, BYID, METAS = KEYS[1], base .. 'j', base .. 'r', base .. 'w', base .. 'c', base .. 'i', base .. 't'
local RTIME, RID, RCOUNT = base .. 'rt', base .. 'ri', base .. 'rc'
local DEAD, DTIME, DID, DMETAS = base .. 'x', base .. 'xt', base .. 'xi', base .. 'xm'
local LEASE, CANCELS, HISTORY = base .. 'l', base .. 'k', base .. 'h'
local WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, ALONE = 1, 2, 4, 8, 16, 32, 64
local LIMIT = 9007199254740992 -- 2^53, the latest instant

-- queue is whether the shard's queue lists its jobs by id, whether it is paused,
-- and its layout, "shards generation"; nothing if there is no such shard.
local function queue()
  local index, paused, layout = string.match(call('GET', META) or '', '^(%d) (%d) (%d+ %d+)')
  if index then return index == '1', paused == '1', layout end
end

local function within(t) return math.max(0, math.min(t, LIMIT)) end

-- precedes compares bytes; Lua's < would follow the locale. It passes over long
-- equal beginnings, and then reads six bytes as one number.
local function precedes(a, b)
  local n, from = math.min(#a, #b), 1
  while from + 63 <= n and sub(a, from, from + 63) == sub(b, from, from + 63) do from = from + 64 end
  while from + 5 <= n do
    local x, y = parse('>I6', a, from), parse('>I6', b, from)
    if x ~= y then return x < y end
    from = from + 6
  end
  for i = from, n do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

local function lower(p, q)
  if p.score ~= q.score then return p.score < q.score end
  return precedes(p.data, q.data)
end

-- fetch asks for members in calls that Lua's stack can hold.
local function fetch(command, key, members)
  if #members == 0 then return {} end
  if #members <= 1000 then return call(command, key, unpack(members)) end
  local all = {}
  for i = 1, #members, 1000 do
    local last = math.min(i + 999, #members)
    local some = call(command, key, unpack(members, i, last))
    for k = 1, last - i + 1 do all[i + k - 1] = some[k] end
  end
  return all
end
