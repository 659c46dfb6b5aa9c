#!lua flags=no-writes
-- Returns when the next schedule of each of several shards is due. Usually no shard has schedules,
-- and two commands show that.
-- KEYS: meta of each shard, then ticks of each shard
-- ARGV: 1 now or ''
-- Returns {now, for each shard when its next schedule is due, or -1, or -2 if it has no record}
-- Uses: clock.

local shards = #KEYS / 2
local reply = {clock(ARGV[1])}

local function next_tick(META, TICKS)
  local record = redis.call('GET', META) -- lib/shard.lua has its format
  if not record then return -2 end
  if string.sub(record, 3, 3) == '1' then return -1 end
  return tonumber(redis.call('ZRANGE', TICKS, 0, 0, 'WITHSCORES')[2] or -1)
end

local usual = redis.call('EXISTS', unpack(KEYS, shards + 1)) == 0
  and redis.call('EXISTS', unpack(KEYS, 1, shards)) == shards

for i = 1, shards do
  reply[i + 1] = usual and -1 or next_tick(KEYS[i], KEYS[shards + i])
end
return reply
