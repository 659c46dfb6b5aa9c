#!lua
-- Puts jobs that another queue had into this one.
-- KEYS: meta jobs ready parked claims byid metas, retries by time, id and count
-- ARGV: 1 now or '', 2 "shards generation", 3 whether only if the shard is paused (1 or 0); then
--   for each: id, PerformAt, first push, retry count, recoveries, error behind its tags, how many
--   payloads, and of each of these: score, data, Meta or ''
-- Returns {'ok', now, handled, 0, reached}, {'unknown'}, {'mismatch', "shards generation"} or
--   {'running'}
-- Uses: JOBS, READY, PARKED, CLAIMS, call, clock, read_meta, wake, plan, cut_tags, unite_tags,
--   items, queue, read_step.

local now, believed = clock(ARGV[1]), ARGV[2]
local index, paused, layout = read_meta()
if index == nil then return {'unknown'} end
if layout ~= believed then return {'mismatch', layout} end
if ARGV[3] == '1' and not paused then return {'running'} end

local ids, coming, i = {}, {}, 4
while ARGV[i] do
  local last, payloads = i + 6 + 3 * tonumber(ARGV[i + 6]), {}
  for k = i + 7, last, 3 do payloads[#payloads + 1] = {score = tonumber(ARGV[k]), data = ARGV[k + 1], meta = ARGV[k + 2]} end
  local tags, text = cut_tags(ARGV[i + 5])
  ids[#ids + 1] = ARGV[i]
  coming[#coming + 1] = {at = tonumber(ARGV[i + 1]), first = math.min(tonumber(ARGV[i + 2]), now), retry = tonumber(ARGV[i + 3]),
    recoveries = tonumber(ARGV[i + 4]), error = text, tags = tags, payloads = payloads}
  i = last + 1
end

local queued = read_step(JOBS, ids) -- may leave some ids for another step
local jobs, ready = queue.load(ids, queued), false

for n, id in ipairs(ids) do
  local own, item = coming[n], jobs[id]
  if not item then
    item = queue.item(id, {at = own.at, first = own.first, retry = own.retry, recoveries = own.recoveries, error = own.error, tags = own.tags,
      list = {}, many = false, tagged = false})
  else -- core.MergeImport
    local job = item.job
    local own_held, held = queue.is_held(own), queue.is_held(job)
    if own_held and not held or own_held == held and own.retry > job.retry then
      job.at, job.retry, job.error = own.at, own.retry, own.error
    elseif job.retry < 0 then
      job.at = math.min(job.at, own.at)
    end
    job.first, job.recoveries = math.min(job.first, own.first), math.max(job.recoveries, own.recoveries)
    job.tags = unite_tags(job.tags, own.tags)
  end

  items.unite(item, own.payloads)
  local place = item.old and item.old.place or (call('HEXISTS', CLAIMS, id) == 1 and PARKED or READY)
  queue.store(item, place, index)
  ready = ready or place == READY
end

plan.write()
if ready and not paused then wake() end
return {'ok', now, #ids, 0, #ids}
