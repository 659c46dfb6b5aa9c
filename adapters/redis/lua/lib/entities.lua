-- An entity is what is stored of an id in the queue or the morgue, old, and what
-- shall be, job: its state, and its payloads in list. With job.many, list is only
-- what comes to the set.
local living = {hash = JOBS, metas = METAS, sets = base .. 'p:'}
local buried = {hash = DEAD, metas = DMETAS, sets = base .. 'd:'}

-- load makes entities of the records that are stored for ids.
local function load(ids, recs)
  local entities, found = {}, {}
  for i, id in ipairs(ids) do if recs[i] then found[#found + 1] = id end end
  local ready, parked = fetch('ZMSCORE', READY, found), fetch('ZMSCORE', PARKED, found)
  local k = 0
  for i, id in ipairs(ids) do
    if recs[i] then
      k = k + 1
      local job = decode(recs[i], tonumber(ready[k] or parked[k]))
      entities[id] = {id = id, area = living, job = job,
        old = {at = job.at, place = ready[k] and READY or PARKED, retry = job.retry, many = job.many}}
    end
  end
  return entities
end

local function load_dead(ids)
  local entities, recs, times = {}, fetch('HMGET', DEAD, ids), fetch('ZMSCORE', DTIME, ids)
  for i, id in ipairs(ids) do
    if recs[i] then
      local job = decode(recs[i], tonumber(times[i]))
      entities[id] = {id = id, area = buried, job = job, old = {at = job.at, many = job.many}}
    end
  end
  return entities
end

-- unite adds payloads to an entity's: for equal bytes the smaller score stays,
-- and on a tie what was there.
local function unite(e, coming)
  local there, by = e.job.list, e.by
  if not by then
    by = {}
    for _, p in ipairs(there) do by[p.data] = p end
    e.by = by
  end
  for _, p in ipairs(coming) do
    local q = by[p.data]
    if not q then
      q = {score = p.score, data = p.data, meta = p.meta}
      there[#there + 1], by[p.data] = q, q
    elseif p.score < q.score then
      q.score, q.meta = p.score, p.meta
    end
    if p.meta ~= '' then e.job.tagged = true end
  end
end
