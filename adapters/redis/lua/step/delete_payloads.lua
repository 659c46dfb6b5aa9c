#!lua flags=allow-oom
-- Removes payloads from queued jobs, and jobs that have no other.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 only jobs first pushed before, 3 only those that have failed (1) or are held
--   (2); then for each: id, how many payloads, and of each of these: score, data
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: JOBS, clock, read_meta, wake, bounds, plan, items, queue, condition, read_step.

local now, is_about = clock(ARGV[1]), condition(ARGV[2], ARGV[3])
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, named, i = {}, {}, 4
while ARGV[i] do
  local last, names = i + 1 + 2 * tonumber(ARGV[i + 1]), {scores = {}, data = {}}
  for k = i + 2, last, 2 do names.scores[#names.scores + 1], names.data[#names.data + 1] = tonumber(ARGV[k]), ARGV[k + 1] end
  ids[#ids + 1], named[#named + 1] = ARGV[i], names
  i = last + 1
end

local queued = read_step(JOBS, ids) -- may leave some ids for another step
local jobs, bound, handled = queue.load(ids, queued), bounds.new(), 0

for n, id in ipairs(ids) do
  local item, names = jobs[id], named[n]
  if item and is_about(item.job) then
    -- The first payload of a fresh job without a slot does not matter.
    local lowest = (item.job.retry >= 0 or item.job.slot ~= '') and items.first(item, 1, 0)[1]
    if #items.take_named(item, names.data, bound, names.scores) > 0 then
      if items.count(item) == 0 then queue.remove(item, index)
      elseif lowest and item.gone[lowest.data] then queue.store_rest(item, now, index)
      else queue.store(item, item.old.place, index) end
      handled = handled + 1
    end
  end
end

plan.write()
if handled > 0 then wake() end
return {'ok', now, handled, 0, #ids}
