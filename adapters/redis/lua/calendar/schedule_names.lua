#!lua flags=no-writes
-- Lists the first names of a shard's schedules behind one. It skips from each name to the next, so
-- it does not read the schedules of a name.
-- KEYS: meta named
-- ARGV: 1 now or '', 2 the name, or '', 3 how many at most
-- Returns {'ok', now, name, how many schedules have it, the smallest id of them, ...} or
--   {'unknown'}
-- Uses: clock.

local META, NAMED = KEYS[1], KEYS[2] -- lib/schedules.lua has its members
local now, after, most = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', META) == 0 then return {'unknown'} end

local reply, from = {'ok', now}, after == '' and '[n' or '(n' .. after .. '\1'
for _ = 1, most do
  local first = redis.call('ZRANGE', NAMED, from, '(o', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local name, id = string.match(first, '^n([^%z]*)%z?(.*)$')
  from = '(n' .. name .. '\1'
  for _, v in ipairs({name, redis.call('ZLEXCOUNT', NAMED, '[n' .. name .. '\0', from), id}) do reply[#reply + 1] = v end
end
return reply
