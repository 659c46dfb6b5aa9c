-- The usual push: entries that are due now, of ids that are neither queued nor
-- claimed, each given once. Otherwise it gives nothing, has written nothing, and
-- what follows does the push. It comes first because it needs nothing of the
-- prelude, whose functions cost more to make than a small push.
local function plain()
  local call, ARGV = redis.call, ARGV
  local META, JOBS, READY, _, CLAIMS, BYID = unpack(KEYS, 1, 6)
  if ARGV[6] ~= '' then return end
  local meta = call('HMGET', META, 'shards', 'generation', 'index', 'paused')
  if meta[1] ~= ARGV[2] or meta[2] ~= ARGV[3] then return end
  local now = ARGV[1]
  if now == '' then
    local t = call('TIME')
    now = string.format('%d', t[1] * 1000000 + t[2]) -- a number would be printed digit by digit
  end

  local new, timed, listed = {}, nil, nil
  if not ARGV[9] then -- one entry
    local id = ARGV[7]
    if call('HEXISTS', CLAIMS, id) == 1 or call('HSETNX', JOBS, id, ARGV[8]) == 0 then return end
    new[id], timed, listed = true, {now, id}, {'0', id}
  else
    local ids, n = {}, 0
    timed, listed = {}, {}
    for i = 7, #ARGV, 2 do
      local id = ARGV[i]
      if new[id] then return end
      new[id], n = true, n + 1
      ids[n], timed[2 * n - 1], timed[2 * n], listed[2 * n - 1], listed[2 * n] = id, now, id, '0', id
    end
    local some = call('HLEN', CLAIMS) > 0 and call('HMGET', CLAIMS, unpack(ids)) or {}
    for i = 1, #some do if some[i] then return end end
    local queued = call('HMGET', JOBS, unpack(ids))
    for i = 1, n do if queued[i] then return end end
    call('HSET', JOBS, unpack(ARGV, 7))
  end
  call('ZADD', READY, unpack(timed))
  if meta[3] == '1' then call('ZADD', BYID, unpack(listed)) end
  if meta[4] ~= '1' and new[call('ZRANGE', READY, '0', '0')[1]] then redis.pcall('SPUBLISH', string.sub(META, 1, -2) .. 'wake', '') end
  return {'ok', tonumber(now)}
end
local done = plain()
if done then return done end

