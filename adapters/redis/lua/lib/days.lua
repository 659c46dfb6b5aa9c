-- The statistics of a queue by day, which record.lua adds up. DAYS, a hash of the queue's first
-- shard, has a field for each day since the Unix epoch: a bit for each hour of which the history has
-- had records (3 bytes), and the statistics as storekit.AppendStats encodes them.
-- Uses: call, sub, byte, char, pack, parse, floor.
-- Defines: SUMS, SQUARES, BUCKETS, read_stats, write_stats, known_day, add_stats, pack_day, keep_days.

-- Sums of more than 2^53 lose digits, as doubles do.
local SUMS, SQUARES, BUCKETS = 4, 2, 64

-- read_stats returns encoded statistics as numbers: the sums, the squares and the buckets of both
-- histograms, in this order; nothing if they are damaged. Numbers that are 0 may be missing.
local function read_stats(text)
  local bytes, at, numbers = {byte(text, 1, 4000)}, 1, {}

  local function number()
    local b = bytes[at]
    at = at + 1
    if b < 128 then return b end

    local n, unit = b - 128, 128
    repeat
      b = bytes[at]
      n, unit, at = n + b % 128 * unit, unit * 128, at + 1
      if unit > 2 ^ 70 then error('damaged') end -- more than ten bytes
    until b < 128
    return n
  end

  local function read()
    for i = 1, SUMS do numbers[i] = number() end
    numbers[SUMS + 1], numbers[SUMS + 2] = parse('>dd', text, at)
    at = at + 8 * SQUARES
    for before = SUMS + SQUARES, SUMS + SQUARES + BUCKETS, BUCKETS do
      local place, distance = before, number()
      while distance > 0 do
        place = place + distance
        if place > before + BUCKETS then error('damaged') end
        numbers[place] = number()
        distance = number()
      end
    end
  end

  if pcall(read) and at == #text + 1 then return numbers end -- a text that ends too early is an error
end

-- write_stats returns the text that read_stats reads.
local function write_stats(numbers)
  local bytes, size = {}, 0

  local function number(n)
    n = math.max(0, math.min(n, 9223372036854775808))
    while n >= 128 do
      size = size + 1
      bytes[size] = 128 + n % 128
      n = floor(n / 128)
    end
    size = size + 1
    bytes[size] = n
  end

  for i = 1, SUMS do number(numbers[i] or 0) end
  local sums = char(unpack(bytes)) .. pack('>dd', numbers[SUMS + 1] or 0, numbers[SUMS + 2] or 0)
  bytes, size = {}, 0
  for before = SUMS + SQUARES, SUMS + SQUARES + BUCKETS, BUCKETS do
    local last = before
    for i = before + 1, before + BUCKETS do
      local n = numbers[i] or 0
      if n > 0 then
        number(i - last)
        number(n)
        last = i
      end
    end
    number(0)
  end
  return sums .. char(unpack(bytes))
end

-- known_day returns the statistics of the day that an hour is in, whether the history has had
-- records of the hour, and the bits of the hours. A day that is missing or damaged is empty.
local function known_day(DAYS, hour)
  local value = call('HGET', DAYS, floor(hour / 24)) or ''
  local hours = #value >= 3 and parse('>I3', value) or 0
  return read_stats(sub(value, 4)) or {}, floor(hours / 2 ^ (hour % 24)) % 2 == 1, hours
end

-- add_stats adds encoded statistics to numbers, n times. Damaged ones count nothing.
local function add_stats(numbers, text, n)
  for place, more in pairs(read_stats(text) or {}) do numbers[place] = (numbers[place] or 0) + n * more end
end

-- pack_day returns the value of a day that has records of one more hour.
local function pack_day(numbers, hours, had, hour)
  if not had then hours = hours + 2 ^ (hour % 24) end
  return pack('>I3', hours) .. write_stats(numbers)
end

-- keep_days removes the day that is farthest from the present one if there are too many.
local function keep_days(DAYS, today)
  local MOST = 33 -- storekit.DaysStored
  local all = call('HKEYS', DAYS)
  if #all <= MOST then return end

  table.sort(all, function(a, b)
    local x, y = math.abs(a - today), math.abs(b - today)
    if x == y then return tonumber(a) < tonumber(b) end
    return x > y
  end)
  call('HDEL', DAYS, all[1])
end
