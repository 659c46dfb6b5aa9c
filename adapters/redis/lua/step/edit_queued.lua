#!lua
-- Replaces a payload of a queued job.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 id, 3 old data, 4 new data
-- Returns {'ok', now, handled, 0, 0} or {'unknown'}
-- Uses: JOBS, call, clock, read_meta, bounds, plan, items, queue.

local now, id, old, new = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local index = read_meta()
if index == nil then return {'unknown'} end

local item = queue.load({id}, {call('HGET', JOBS, id)})[id]
local edited = item and items.take_named(item, {old}, bounds.new())[1]
if not edited then return {'ok', now, 0, 0, 0} end

items.merge(item, {{score = edited.score, data = new, meta = edited.meta}})
queue.store(item, item.old.place, index)
plan.write()
return {'ok', now, 1, 0, 0}
