#!lua
-- Replaces a payload of a dead letter.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count,
--   dead, its times, ids, metas and groups
-- ARGV: 1 now or '', 2 id, 3 old data, 4 new data
-- Returns {'ok', now, handled, 0, 0} or {'unknown'}
-- Uses: DEAD, call, clock, read_meta, bounds, plan, items, morgue.

local now, id, old, new = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
if read_meta() == nil then return {'unknown'} end

local item = morgue.load({id}, {call('HGET', DEAD, id)})[id]
local edited = item and items.take_named(item, {old}, bounds.new())[1]
if not edited then return {'ok', now, 0, 0, 0} end

item.job.at = now
items.merge(item, {{score = edited.score, data = new, meta = edited.meta}})
morgue.store(item)
plan.write()
return {'ok', now, 1, 0, 0}
