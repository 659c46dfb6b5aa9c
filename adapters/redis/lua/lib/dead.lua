-- bury plans to put payloads into the morgue; entities are those it holds.
local function bury(entities, id, payloads, reason, now)
  local e = entities[id]
  if not e then
    e = {id = id, area = buried, job = {list = {}, retry = -1, recoveries = 0, many = false, tagged = false}}
    entities[id] = e
  end
  e.job.at, e.job.first, e.job.error = now, now, reason
  unite(e, payloads)
  e.changed = true
end

local function keep_dead(e)
  keep(e)
  if not e.old or e.old.at ~= e.job.at then zadd(DTIME, e.job.at, e.id) end
  if not e.old then zadd(DID, 0, e.id) end
end

local function remove_dead(e)
  drop(e)
  zrem(DTIME, e.id)
  zrem(DID, e.id)
end
