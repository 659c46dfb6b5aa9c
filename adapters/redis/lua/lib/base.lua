-- Short names of functions of Lua and Redis, and functions that any script may need.
-- Uses: MAX_INSTANT.
-- Defines: call, sub, byte, char, pack, parse, band, floor, instant, precedes, fetch, reader.

local call, sub, byte, char = redis.call, string.sub, string.byte, string.char
local pack, parse, band, floor = struct.pack, struct.unpack, bit.band, math.floor

-- instant returns t, or the nearest instant if t is outside their range.
local function instant(t) return math.max(0, math.min(t, MAX_INSTANT)) end

-- precedes reports whether the bytes of a sort before those of b; Lua's < would follow the locale.
-- It skips a long common beginning, and then reads six bytes as one number.
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

-- fetch calls a command that returns a value for each of the members, as often as
-- Lua's stack requires, and returns all values.
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

-- reader returns a function that returns the k-th of the given fields of a hash; k must not
-- decrease. It reads the fields one by one, since any of them may be large.
local function reader(key, fields)
  local value, at = nil, 0
  return function(k)
    if k ~= at then value, at = call('HGET', key, fields[k]), k end
    return value
  end
end
