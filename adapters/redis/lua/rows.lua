#!lua flags=no-writes
-- Reads queued jobs or dead letters of a shard by their ids.
-- KEYS: all of the shard
-- ARGV: 1 whether dead letters (1 or 0), 2 payloads of each, 3 bytes of each error, as
--   lib/text.lua has it, 4... ids
-- Returns {'ok', how many of the ids it has read, id, PerformAt or ChangedAt, count, packed
--   job or dead letter, ...}; it reads fewer if they are large, and passes over ids that are not there, or that
--   can't be read
-- Uses: JOBS, READY, PARKED, DEAD, DTIME, call, instant, bounds, packed, items, queue, morgue, read_step, cut_text.

local dead, most_payloads, most_error = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3])
local ids, found = {unpack(ARGV, 4)}, nil
local packed_jobs = read_step(dead and DEAD or JOBS, ids, most_payloads == 0 and 1048576 or nil)
if dead then found = morgue.load(ids, packed_jobs, true) else found = queue.load(ids, packed_jobs, true) end

-- some_of returns the payloads that are listed of an item, and how many it has.
local bound = bounds.new()
local function some_of(item)
  if most_payloads > 0 then
    local _, size = bounds.left(bound)
    return items.first(item, most_payloads, size)
  end
  if item.job.many then return {}, items.count(item) end
  return {}, #item.job.list
end

local reply = {'ok', #ids}
local lists = dead and {DTIME} or {READY, PARKED}
for i, id in ipairs(ids) do
  local item = found[id]
  if not item and not packed_jobs[i] then -- it has moved since it was listed, or the lists contradict the hash
    for _, list in ipairs(lists) do assert(not call('ZSCORE', list, id), 'attempt to read what only the lists have') end
  end
  if item then
    local payloads, total = some_of(item)
    local size = 0
    for _, p in ipairs(payloads) do size = size + #p.data end
    if not bounds.fits(bound, #payloads, size) then
      reply[2] = i - 1
      break
    end
    bounds.count(bound, #payloads, size)
    item.job.error = cut_text(item.job.error, most_error)
    for _, v in ipairs({id, string.format('%.0f', instant(item.job.at)), total, packed.encode_with(item.job, payloads, packed.group(item.job))}) do
      reply[#reply + 1] = v
    end
  end
end
return reply
