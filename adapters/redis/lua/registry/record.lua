#!lua flags=allow-oom
-- Stores an owner's counts of a queue in minutes of one hour. The history belongs to the queue's
-- first shard. It is a hash for each hour; 27 hashes take turns. The field hour is the hash's
-- hour. Each other field, named by a digit and an owner, has the owner's counts in ten minutes:
-- for each minute, in order, its number within the hour (a byte), the length of the statistics (2
-- bytes), how much they count (8 bytes), and the statistics. The hour's day has the sum of the
-- stored statistics: see lib/days.lua. An hour that the history has lost since, as after a clock that
-- jumped ahead and back, would count twice in its day, so its records are ignored.
-- KEYS: meta, history of the hour, days
-- ARGV: 1 now or '', 2 owner, 3 hour since the Unix epoch; then, of at most 60 minutes of it, each
--   its number, how much was counted (8 bytes) and the statistics
-- Returns how many are stored
-- Uses: call, sub, pack, parse, floor, precedes, clock, known_day, add_stats, pack_day, keep_days.

local META, HISTORY, DAYS = KEYS[1], KEYS[2], KEYS[3]
local HOUR, MINUTE, HEAD = 3600000000, 60000000, 11
local now, owner, hour = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])

if call('EXISTS', META) == 0 then return 0 end
local first, last = now - now % MINUTE - 24 * HOUR, now + HOUR -- see ports.Registry.Record
local there = call('HGET', HISTORY, 'hour')
local same = there == ARGV[3] -- or the hash is of an earlier round, or of a clock that stepped back
local day, had, hours = known_day(DAYS, hour)
if had and not same then return 0 end
local blocks, count = {}, 0

-- read returns the records of a field, by minute.
local function read(field)
  local records, value, pos = {}, same and call('HGET', HISTORY, field) or '', 1
  while pos <= #value do
    local minute, size = parse('>BI2', value, pos)
    records[minute] = sub(value, pos, pos + HEAD + size - 1)
    pos = pos + HEAD + size
  end
  return records
end

for i = 4, #ARGV, 3 do
  local minute, counted = tonumber(ARGV[i]), ARGV[i + 1]
  local at, field = hour * HOUR + minute * MINUTE, floor(minute / 10) .. owner
  if at >= first and at <= last then
    local block = blocks[field] or {records = read(field)}
    local known = block.records[minute]
    blocks[field] = block
    if not known or precedes(sub(known, 4, HEAD), counted) then
      add_stats(day, ARGV[i + 2], 1)
      if known then add_stats(day, sub(known, HEAD + 1), -1) end
      block.records[minute] = pack('>BI2', minute, #ARGV[i + 2]) .. counted .. ARGV[i + 2]
      block.changed, count = true, count + 1
    end
  end
end
if count == 0 then return 0 end

local fields = {'hour', ARGV[3]}
for field, block in pairs(blocks) do
  if block.changed then
    local value = {}
    for minute = 0, 59 do value[#value + 1] = block.records[minute] end
    fields[#fields + 1], fields[#fields + 2] = field, table.concat(value)
  end
end

local value = pack_day(day, hours, had, hour)
if there and not same then call('UNLINK', HISTORY) end
call('HSET', HISTORY, unpack(fields))
if call('HSET', DAYS, floor(hour / 24), value) == 1 then
  keep_days(DAYS, floor(now / HOUR / 24))
end
-- A minute is kept for 24 hours. The hash expires before that of 27 hours later takes its place.
call('PEXPIRE', HISTORY, string.format('%.0f', floor(((hour + 26) * HOUR - now) / 1000)))
return count
