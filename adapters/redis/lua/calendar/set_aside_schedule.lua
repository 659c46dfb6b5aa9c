#!lua flags=allow-oom
-- Sets aside the record of a schedule if it can't be read or is lost.
-- KEYS: meta aside schedules ticks named
-- ARGV: 1 now or '', 2 field, as in lib/schedules.lua, 3 the record that the caller could not read,
--   or '', 4 why it could not
-- Returns {}, if nothing is wrong, or {'record', why, id}
-- Uses: SCHEDULES, TICKS, NAMED, call, clock, plan, schedules, put_aside.

local now, field, unread, why = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local id, name = schedules.parts(field)
local stored = call('HGET', SCHEDULES, field)

if not stored then
  local by_name, by_id = schedules.named(field)
  local listed = call('ZSCORE', TICKS, field) or call('ZSCORE', NAMED, by_name) or call('ZSCORE', NAMED, by_id)
  if not listed then return {} end
  why = 'its record is lost'
elseif stored == '' or stored ~= unread then
  local ok, fault = pcall(schedules.decode, stored, field)
  if ok then return {} end
  why = tostring(fault)
end

-- As storekit.UnreadableSchedule.
why = 'schedule ' .. name .. ': ' .. why .. '; create the schedule again, and discard this record'
put_aside(now, 's', id, why, stored or '', id .. '/' .. name)
schedules.remove(field)
plan.write()
return {'record', why, id}
