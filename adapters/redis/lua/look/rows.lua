#!lua flags=no-writes
-- Reads queued jobs or dead letters of a shard by their ids.
-- KEYS: all of the jobs of the shard
-- ARGV: 1 whether dead letters (1 or 0), 2 payloads of each, 3 bytes of each error, as
--   packed.short_failures has them, 4... ids
-- Returns {'ok', how many of the ids it has read, how many of them lack the record or the
--   payloads, id, PerformAt or ChangedAt, count, packed job or dead letter, ...}; it reads fewer
--   if they are large, and skips ids that are absent or can't be read
-- Uses: JOBS, READY, PARKED, DEAD, DTIME, call, instant, bounds, passing, items, queue,
--   packed, morgue, read_step.

local dead, most_payloads, most_error = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3])
local ids, found = {unpack(ARGV, 4)}, nil
local packed_jobs = read_step(dead and DEAD or JOBS, ids, most_payloads == 0 and 1048576 or nil)
if dead then found = morgue.load(ids, packed_jobs, true) else found = queue.load(ids, packed_jobs, true) end

-- some_of returns an item's payloads for the list, and how many it has.
local bound = bounds.new()
local function some_of(item)
  if most_payloads > 0 then
    local _, size = bounds.left(bound)
    return items.first(item, most_payloads, size)
  end
  return {}, items.count(item)
end

local reply = {'ok', #ids, 0}
local lists = dead and {DTIME} or {READY, PARKED}
for i, id in ipairs(ids) do
  local item = found[id]
  if not item and not packed_jobs[i] then -- it has moved since it was listed, or the lists contradict the hash
    for _, list in ipairs(lists) do if call('ZSCORE', list, id) then reply[3] = reply[3] + 1 end end
  end

  local payloads, total, size = nil, 0, 0
  if item then payloads, total = passing(some_of, item) end
  if item and not payloads then reply[3] = reply[3] + 1 end

  if payloads then
    for _, p in ipairs(payloads) do size = size + #p.data end
    if not bounds.fits(bound, #payloads, size) then
      reply[2] = i - 1
      break
    end
    bounds.count(bound, #payloads, size)
    item.job.failures = packed.short_failures(item.job.failures, most_error)
    for _, v in ipairs({id, string.format('%.0f', instant(item.job.at)), total, item.area.encode(item.job, payloads)}) do
      reply[#reply + 1] = v
    end
  end
end
return reply
