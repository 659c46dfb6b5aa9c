#!lua
-- Replaces a dead payload.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids and metas
-- ARGV: 1 now or '', 2 id, 3 old data, 4 new data
-- Returns {'ok', now, handled} or {'unknown'}

local now, id, old, new = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
if queue() == nil then return {'unknown'} end
local e = load_dead({id})[id]
local edited
for _, p in ipairs(e and first(e, LIMIT) or {}) do if p.data == old then edited = p end end
if not edited then return {'ok', now, 0, 0} end

local p = {score = edited.score, data = new, meta = edited.meta}
e.job.at, e.job.first = now, now
if old ~= new then
  e.taken = {edited}
  for i, other in ipairs(e.job.list) do if other.data == old then table.remove(e.job.list, i) end end
  unite(e, {p})
end
keep_dead(e)
write()
return {'ok', now, 1, 0}
