#!lua flags=allow-oom
-- Removes queued jobs, or only their first payloads.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 only those first pushed before, 3 only those that have failed (1) or are
--   held (2), 4 whether only first payloads (1 or 0); then the ids, each followed by its first
--   payload if 4 is 1
-- Returns {'ok', now, handled, 0, reached} or {'unknown'}
-- Uses: JOBS, clock, read_meta, wake, bounds, plan, items, queue, condition, named, read_step.

local now, is_about = clock(ARGV[1]), condition(ARGV[2], ARGV[3])
local index = read_meta()
if index == nil then return {'unknown'} end

local ids, firsts = named(5, ARGV[4] == '1')
local asked, bound = #ids, bounds.new()
local packed_jobs = read_step(JOBS, ids)
local jobs, handled, reached = queue.load(ids, packed_jobs), 0, 0

for i, id in ipairs(ids) do
  local item = jobs[id]
  if item and not is_about(item.job) then item = nil end
  if item and firsts then
    local part, whole = items.take_first(item, firsts[i], bound)
    if not part and not whole then break end
    if part and not whole then
      queue.store_rest(item, now, index)
      handled = handled + 1
    end
    if not (part and whole) then item = nil end
  elseif item and not items.goes_whole(item) then
    local part, whole = items.take(item, bound)
    if not whole then
      if #part > 0 then queue.store(item, item.old.place, index) end
      break
    end
  end

  if item then
    queue.remove(item, index)
    jobs[id], handled = nil, handled + 1
  end
  reached = i
end

plan.write()
if handled > 0 or reached < asked then wake() end
return {'ok', now, handled, 0, reached}
