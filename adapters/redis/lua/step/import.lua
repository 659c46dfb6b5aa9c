#!lua
-- Puts dead letters that another store had into the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count, dead, its times,
--   ids, metas and groups
-- ARGV: 1 now or '', 2 "shards generation", 3 whether only if the shard is paused (1 or 0); then
--   for each: id, when it changed, the packed dead letter
-- Returns {'ok', now, handled, 0, reached}, {'unknown'}, {'mismatch', "shards generation"} or
--   {'running'}
-- Uses: DEAD, clock, read_meta, plan, unite_tags, packed, items, groups, morgue, read_step.

local now, believed = clock(ARGV[1]), ARGV[2]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
if ARGV[3] == '1' and not paused then return {'running'} end

local ids, letters = {}, {}
for i = 4, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
  letters[#letters + 1] = packed.decode_dead(ARGV[i + 2], tonumber(ARGV[i + 1]))
end

local buried = read_step(DEAD, ids) -- may leave some ids for another step
local dead, handled = morgue.load(ids, buried), 0

for n, id in ipairs(ids) do -- core.MergeImported
  local letter, item = letters[n], dead[id]
  local later = item == nil or letter.at > item.job.at
  local had, payloads = item and item.job.tags, letter.list
  if later then item = morgue.open(dead, id, letter)
  else item.job.tags = unite_tags(had, letter.tags) end

  local _, changed = items.merge(item, payloads)
  if later or changed or item.job.tags ~= had then
    morgue.store(item)
    handled = handled + 1
  end
end

groups.finish()
plan.write()
return {'ok', now, handled, 0, #ids}
