#!lua
-- Stores entries of one shard, in order, and wakes it if it is due earlier.
-- KEYS: meta jobs ready parked claims byid metas
-- ARGV: 1 now or '', 2 shard count, 3 generation, 4 rule (0 keep, 1 earliest,
--   2 debounce), 5 limit in µs; then for each entry: id, when ('' now, @instant,
--   +delay), record of a job that is due now
-- Returns {'ok', now}, {'unknown'}, {'mismatch', shards, generation}

local now, shards, generation = clock(ARGV[1]), ARGV[2], ARGV[3]
local rule, limit = ARGV[4], tonumber(ARGV[5])
local meta = call('HMGET', META, 'shards', 'generation', 'index', 'paused')
if not meta[1] then return {'unknown'} end
if meta[1] ~= shards or meta[2] ~= generation then return {'mismatch', tonumber(meta[1]), tonumber(meta[2])} end
local index, paused = meta[3] == '1', meta[4] == '1'

local function instant(when)
  if when == '' then return now end
  local n = tonumber(sub(when, 2))
  return byte(when) == 64 and n or within(now + n) -- 64 is '@'
end

-- merge meets a queued job with a push (RULES 2).
local function merge(job, coming)
  job.first = math.min(job.first, now)
  if job.retry >= 0 or rule == '0' then return end
  if rule == '1' then job.at = math.min(job.at, coming)
  else job.at = math.max(job.at, math.min(coming, within(job.first + limit))) end
end

local ids, new = {}, {}
for i = 6, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local recs = fetch('HMGET', JOBS, ids)
local fresh, entities, merged = {}, {}, false
for n, id in ipairs(ids) do
  if recs[n] then merged = true
  elseif not fresh[id] then fresh[id] = 0; new[#new + 1] = id end
end
if merged then entities = load(ids, recs) end

-- A job that its claim still keeps from running is parked.
local claimed = {}
if #new > 0 and call('HLEN', CLAIMS) > 0 then
  if #new > 4 then claimed = fetch('HMGET', CLAIMS, new) end
  for i, id in ipairs(new) do
    if #new <= 4 then claimed[i] = call('HEXISTS', CLAIMS, id) == 1 end
    claimed[id] = claimed[i] and true or false
  end
end

for n, id in ipairs(ids) do
  local when, rec, e = instant(ARGV[3 * n + 4]), ARGV[3 * n + 5], entities[id]
  if e then
    merge(e.job, when)
    unite(e, decode(rec, now).list)
  elseif fresh[id] == 0 then
    fresh[id] = {at = when, rec = rec}
  else -- twice in one push
    e = {id = id, area = queue, job = decode(fresh[id].rec, fresh[id].at)}
    e.job.first = now
    merge(e.job, when)
    unite(e, decode(rec, now).list)
    entities[id] = e
  end
end

local soonest = math.huge
for _, id in ipairs(new) do
  local job, place = fresh[id], claimed[id] and PARKED or READY
  if entities[id] then
    enqueue(entities[id], place, index)
    job.at = entities[id].job.at
  else
    if job.at ~= now then -- FirstPush follows the score
      local flags = byte(job.rec)
      local head = band(flags, WIDE) > 0 and 9 or 8
      job.rec = char(flags + FIRST) .. sub(job.rec, 2, head) .. pack('>I8', now) .. sub(job.rec, head + 1)
    end
    hset(JOBS, id, job.rec)
    zadd(place, job.at, id)
    if index then zadd(BYID, 0, id) end
  end
  if place == READY then soonest = math.min(soonest, job.at) end
end
for id, e in pairs(entities) do
  if e.old then
    enqueue(e, e.old.place, index)
    if e.old.place == READY and e.job.at < e.old.at then soonest = math.min(soonest, e.job.at) end
  end
end
local head = soonest < math.huge and call('ZRANGE', READY, 0, 0, 'WITHSCORES') or {}
write()
if not paused and soonest < tonumber(head[2] or math.huge) then wake() end
return {'ok', now}
