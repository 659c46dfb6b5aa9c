#!lua
-- Puts jobs that another queue had into this one.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 "shards generation", 3 whether only if the shard is paused (1 or 0); then
--   for each: id, PerformAt, the packed job, which has no slot
-- Returns {'ok', now, handled, 0, reached}, {'unknown'}, {'mismatch', "shards generation"} or
--   {'running'}
-- Uses: JOBS, READY, PARKED, CLAIMS, call, clock, read_meta, wake, plan, unite_tags, packed, items,
--   queue, read_step.

local now, believed = clock(ARGV[1]), ARGV[2]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
if ARGV[3] == '1' and not paused then return {'running'} end

local ids, imported = {}, {}
for i = 4, #ARGV, 3 do
  local job = packed.decode(ARGV[i + 2], tonumber(ARGV[i + 1]))
  job.first = math.min(job.first, now)
  ids[#ids + 1], imported[#imported + 1] = ARGV[i], job
end

local queued = read_step(JOBS, ids) -- may leave some ids for another step
local jobs, ready = queue.load(ids, queued), false

-- merge changes the state of a queued job as an import for it does (core.MergeImport).
local function merge(job, incoming)
  local held, incoming_held = queue.is_held(job), queue.is_held(incoming)
  if incoming_held and not held or incoming_held == held and incoming.retry > job.retry then
    job.at, job.retry, job.slot, job.failures = incoming.at, incoming.retry, '', incoming.failures
  elseif job.retry < 0 and job.slot == '' then
    job.at = math.min(job.at, incoming.at)
  end

  job.first, job.recoveries = math.min(job.first, incoming.first), math.max(job.recoveries, incoming.recoveries)
  job.tags = unite_tags(job.tags, incoming.tags)
end

for n, id in ipairs(ids) do
  local job, item = imported[n], jobs[id]
  local payloads = job.list
  if item then merge(item.job, job)
  else
    job.list = {} -- the merge rule decides which payloads stay
    item = queue.item(id, job)
  end

  items.unite(item, payloads)
  local place = item.old and item.old.place or (call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY)
  queue.store(item, place, index)
  ready = ready or place == READY
end

plan.write()
if ready and not paused then wake() end
return {'ok', now, #ids, 0, #ids}
