#!lua flags=no-writes
-- Returns when the next schedule of a shard is due, and the first that are due now, about a MiB of
-- them.
-- KEYS: meta schedules ticks
-- ARGV: 1 now or '', 2 how many due ones at most
-- Returns {'ok', now, when the next is due or -1, field, record or nil if it is lost, ...} or
--   {'unknown'}
-- Uses: clock.

local META, SCHEDULES, TICKS = unpack(KEYS)
local now, most = clock(ARGV[1]), ARGV[2]

local record = redis.call('GET', META) -- lib/shard.lua has its format
if not record then return {'unknown'} end
if string.sub(record, 3, 3) == '1' then return {'ok', now, -1} end

local first = redis.call('ZRANGE', TICKS, 0, 0, 'WITHSCORES')
local head = tonumber(first[2] or -1)
local reply = {'ok', now, head}
if head < 0 or head > now or most == '0' then return reply end

local MOST_BYTES, size = 1048576, 0
for _, field in ipairs(redis.call('ZRANGE', TICKS, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, most)) do
  local schedule = redis.call('HGET', SCHEDULES, field)
  reply[#reply + 1], reply[#reply + 2], size = field, schedule, size + #(schedule or '')
  if size > MOST_BYTES then break end
end
return reply
