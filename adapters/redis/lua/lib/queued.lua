-- unlist plans to take a queued job out of every list but that of its time.
local function unlist(id, retry, index)
  if index then zrem(BYID, id) end
  if retry >= 0 then zrem(RTIME, id); zrem(RID, id); zrem(RCOUNT, id) end
end

-- enqueue plans to store a queued job in its place; remove takes it out.
local function enqueue(e, place, index)
  local id, job, old, at = e.id, e.job, e.old, string.format('%d', e.job.at) -- numbers would be printed digit by digit
  keep(e)
  if not old or old.at ~= job.at or old.place ~= place then zadd(place, at, id) end
  if old and old.place ~= place then zrem(old.place, id) end
  if index and not old then zadd(BYID, '0', id) end
  if job.retry < 0 then unlist(id, old and old.retry or -1, false)
  elseif not old or old.at ~= job.at or old.retry ~= job.retry then
    zadd(RTIME, at, id)
    zadd(RID, '0', id)
    zadd(RCOUNT, string.format('%d', job.retry), id)
  end
end

local function remove(e, index)
  drop(e)
  zrem(e.old.place, e.id)
  unlist(e.id, e.old.retry, index)
end
