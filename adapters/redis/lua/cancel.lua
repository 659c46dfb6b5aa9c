#!lua flags=allow-oom
-- Marks claimed jobs as cancelled.
-- KEYS: meta claims cancels
-- ARGV: 1 now or '', 2 drop (1 or 0), 3 channel; then the ids
-- Returns {'ok', now, handled} or {'unknown'}

local META, CLAIMS, CANCELS = unpack(KEYS)
local drop, channel, handled, marks = ARGV[2], ARGV[3], 0, {}
local now = clock(ARGV[1])
if redis.call('EXISTS', META) == 0 then return {'unknown'} end
for i = 4, #ARGV do
  local id = ARGV[i]
  local claim = redis.call('HGET', CLAIMS, id)
  local mark = claim and string.sub(claim, 1, 16) .. drop
  if mark and marks[id] == nil and redis.call('HGET', CANCELS, id) ~= mark then
    marks[id], handled = mark, handled + 1
  end
end
for id, mark in pairs(marks) do redis.call('HSET', CANCELS, id, mark) end
if handled > 0 then redis.pcall('SPUBLISH', channel, '') end
return {'ok', now, handled, 0}
