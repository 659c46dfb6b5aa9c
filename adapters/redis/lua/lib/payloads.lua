-- check_local fails if another server has the set of an id's payloads.
local function check_local(key) call('EXISTS', key, META) end

-- first is the n lowest payloads of an entity, in order, and how many it has.
local function first(e, n)
  local job, key, by = e.job, e.area.sets .. e.id, {}
  local all, total = {}, #job.list
  if job.many then
    check_local(key)
    local stored, fields, tags = call('ZRANGE', key, 0, n - 1, 'WITHSCORES'), {}, {}
    if job.tagged then
      for i = 1, #stored, 2 do fields[#fields + 1] = e.id .. '\0' .. stored[i] end
      tags = fetch('HMGET', e.area.metas, fields)
    end
    for i = 1, #stored, 2 do
      local p = {score = tonumber(stored[i + 1]), data = stored[i], meta = tags[(i + 1) / 2] or ''}
      all[#all + 1], by[p.data] = p, p
    end
    total = call('ZCARD', key)
  end
  local datas = {}
  for i, p in ipairs(job.list) do datas[i] = p.data end
  local scores = job.many and fetch('ZMSCORE', key, datas) or {}
  for i, p in ipairs(job.list) do
    local there = tonumber(scores[i] or nil)
    if job.many and not there then total = total + 1 end
    if there and p.score < there and by[p.data] then
      by[p.data].score, by[p.data].meta = p.score, p.meta
    elseif not there or p.score < there then
      all[#all + 1] = p
    end
  end
  if not job.many or #job.list > 0 then table.sort(all, lower) end
  for i = #all, n + 1, -1 do all[i] = nil end
  return all, total
end

-- keep plans to store an entity's record and payloads. Those of e.taken leave
-- its set.
local function keep(e)
  local job, area = e.job, e.area
  local key, datas = area.sets .. e.id, {}
  if not job.many and not small(job.list) and #job.list > 1 then job.many = true end
  if job.many then
    check_local(key)
    for i, p in ipairs(job.list) do datas[i] = p.data end
    local scores = fetch('ZMSCORE', key, datas)
    for i, p in ipairs(job.list) do
      local there = tonumber(scores[i] or nil)
      if not there or p.score < there then
        zadd(key, p.score, p.data)
        if p.meta ~= '' then hset(area.metas, e.id .. '\0' .. p.data, p.meta)
        elseif there and job.tagged then hdel(area.metas, e.id .. '\0' .. p.data) end
      end
    end
    for _, p in ipairs(e.taken or {}) do
      zrem(key, p.data)
      if job.tagged then hdel(area.metas, e.id .. '\0' .. p.data) end
    end
  end
  hset(area.hash, e.id, encode(job))
end

-- drop plans to remove an entity's record and payloads.
local function drop(e)
  hdel(e.area.hash, e.id)
  if not e.old.many then return end
  local key = e.area.sets .. e.id
  check_local(key)
  if e.job.tagged then
    for _, data in ipairs(call('ZRANGE', key, 0, -1)) do hdel(e.area.metas, e.id .. '\0' .. data) end
  end
  unlinked[#unlinked + 1] = key
end
