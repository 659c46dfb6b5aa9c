#!lua
-- Puts records of what became of ids, or marks, that another queue had into a shard.
-- KEYS: meta, lease, records, their times, results
-- ARGV: 1 now or '', 2 "shards generation", 3 whether only if the shard is paused (1 or 0), 4 the age
--   of a shard that has kept no record, 5 whether all are marks (1 or 0); then for each: id, the record
--   as it is stored, and its result, or ''
-- Returns {'ok', now, handled, 0, reached}, {'unknown'}, {'mismatch', "shards generation"} or
--   {'running'}
-- Uses: call, pack, parse, fetch, clock, read_meta, marked.

local LEASE, PAST, PTIME, RESULTS = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, believed, marks = clock(ARGV[1]), ARGV[2], ARGV[5] == '1'
local _, paused, layout = read_meta()
if layout == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
if ARGV[3] == '1' and not paused then return {'running'} end

local handled, fields = math.floor((#ARGV - 5) / 3), {}
if handled == 0 then return {'ok', now, 0, 0, 0} end
for i = 6, #ARGV, 3 do fields[#fields + 1], fields[#fields + 2] = ARGV[i], ARGV[i] .. '\0' end
local stored, before = fetch('HMGET', PAST, fields), call('HGET', LEASE, 'past')
call('ZCARD', PTIME)
call('HLEN', RESULTS)

local sum, age = 0, 0
if before then sum, age = parse('>I8I8', before) end
if age == 0 then age = tonumber(ARGV[4]) end
local written, times, values, gone = {}, {}, {}, {}

local function time_of(record) return (parse('>I8', record)) end

local function write(field, record)
  written[#written + 1], written[#written + 2] = field, record
  times[#times + 1], times[#times + 2] = time_of(record), field
end

-- raise keeps the mark of a record beside that of its id, where former is (core.ImportMark).
local function raise(field, former, record)
  local at, score, bytes = time_of(record), marked(record)
  local old_score, old_bytes = marked(former)
  if old_score then
    at = math.max(at, time_of(former))
    if old_score > score then bytes = old_bytes end
  end
  write(field, pack('>I8', at) .. string.rep('\0', 20) .. bytes .. '\128' .. string.rep('\0', 8))
end

-- keep stores a record and its result, unless the present record stays (core.ImportPast).
local function keep(id, present, beside, record, result)
  if present and #present < 12 then present = false end
  local comes = not present or time_of(record) > time_of(present)
  local stays, leaves = present, record
  if comes then stays, leaves = record, present end

  local high, low = marked(leaves), marked(stays)
  if high and (not low or high > low) then raise(id .. '\0', beside, leaves) end
  if not comes then return end

  local size = present and parse('>I4', present, 9) or 0
  write(id, record)
  sum = sum - size + #result
  if result ~= '' then values[#values + 1], values[#values + 2] = id, result
  elseif size > 0 then gone[#gone + 1] = id end
end

for i = 1, handled do
  local id, record, result = ARGV[3 * i + 3], ARGV[3 * i + 4], ARGV[3 * i + 5]
  if marks then raise(id .. '\0', stored[2 * i], record) else keep(id, stored[2 * i - 1], stored[2 * i], record, result) end
end

if #written > 0 then
  call('HSET', PAST, unpack(written))
  call('ZADD', PTIME, unpack(times))
end
if #gone > 0 then call('HDEL', RESULTS, unpack(gone)) end
if #values > 0 then call('HSET', RESULTS, unpack(values)) end
local after = pack('>I8I8', math.max(0, sum), age)
if after ~= before then call('HSET', LEASE, 'past', after) end
return {'ok', now, handled, 0, handled}
