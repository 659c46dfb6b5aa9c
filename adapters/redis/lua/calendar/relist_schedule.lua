#!lua flags=allow-oom
-- Corrects when a schedule is listed as due, unless its record has changed meanwhile.
-- KEYS: meta schedules ticks
-- ARGV: 1 field, as in lib/schedules.lua, 2 its record, 3 the record's tick or ''
-- Returns {'ok'}

local SCHEDULES, TICKS = KEYS[2], KEYS[3]
local field, record, tick = unpack(ARGV)
if redis.call('HGET', SCHEDULES, field) ~= record then return {'ok'} end

if tick == '' then redis.call('ZREM', TICKS, field) else redis.call('ZADD', TICKS, tick, field) end
return {'ok'}
