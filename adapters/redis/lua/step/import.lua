#!lua
-- Puts dead letters that another store had into the morgue.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count, dead, its times,
--   ids, metas and groups
-- ARGV: 1 now or '', 2 "shards generation", 3 whether only if the shard is paused (1 or 0); then
--   for each: id, when it changed, its error behind its tags, its group, how many payloads, and of
--   each of these: score, data, Meta or ''
-- Returns {'ok', now, handled, 0, reached}, {'unknown'}, {'mismatch', "shards generation"} or
--   {'running'}
-- Uses: DEAD, clock, read_meta, plan, cut_tags, unite_tags, items, groups, morgue, read_step.

local now, believed = clock(ARGV[1]), ARGV[2]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
if ARGV[3] == '1' and not paused then return {'running'} end

local ids, letters, i = {}, {}, 4
while ARGV[i] do
  local last, payloads = i + 4 + 3 * tonumber(ARGV[i + 4]), {}
  for k = i + 5, last, 3 do payloads[#payloads + 1] = {score = tonumber(ARGV[k]), data = ARGV[k + 1], meta = ARGV[k + 2]} end
  local tags, text = cut_tags(ARGV[i + 2])
  ids[#ids + 1] = ARGV[i]
  letters[#letters + 1] = {at = tonumber(ARGV[i + 1]), error = text, tags = tags, group = ARGV[i + 3], payloads = payloads}
  i = last + 1
end

local buried = read_step(DEAD, ids) -- may leave some ids for another step
local dead, handled = morgue.load(ids, buried), 0

for n, id in ipairs(ids) do
  local letter, item = letters[n], dead[id]
  local later = item == nil or letter.at > item.job.at
  local tags = item and unite_tags(item.job.tags, letter.tags)
  local tagged = item and tags ~= item.job.tags
  if later then item = morgue.open(dead, id, letter.error, letter.group, letter.at, letter.tags)
  else item.job.tags = tags end

  local _, changed = items.merge(item, letter.payloads)
  if later or tagged or changed then
    morgue.store(item)
    handled = handled + 1
  end
end

groups.finish()
plan.write()
return {'ok', now, handled, 0, #ids}
