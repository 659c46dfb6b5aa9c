#!lua flags=allow-oom
-- Cancels claimed jobs.
-- KEYS: meta claims cancels lease
-- ARGV: 1 now or '', 2 drop (1 or 0), 3 channel; then the ids
-- Returns {'ok', now, handled, 0} or {'unknown'}
-- Uses: clock, note_reader.
--
-- A cancel is stored as receipt, drop (1 or 0).

local META, CLAIMS, CANCELS, LEASE = unpack(KEYS)
local now, drop, channel = clock(ARGV[1]), ARGV[2], ARGV[3]
if redis.call('EXISTS', META) == 0 then return {'unknown'} end

local noted, cancels, handled = note_reader(CLAIMS, LEASE), {}, 0
for i = 4, #ARGV do
  local id = ARGV[i]
  local receipt = noted(id) or redis.call('HGET', CLAIMS, id)
  local cancel = receipt and string.sub(receipt, 1, 16) .. drop
  if cancel and cancels[id] == nil and redis.call('HGET', CANCELS, id) ~= cancel then
    cancels[id], handled = cancel, handled + 1
  end
end

for id, cancel in pairs(cancels) do redis.call('HSET', CANCELS, id, cancel) end
if handled > 0 then redis.pcall('SPUBLISH', channel, '') end
return {'ok', now, handled, 0}
