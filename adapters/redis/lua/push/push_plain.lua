-- The usual push: entries that are due now, of ids that are neither queued nor claimed, each given
-- once. In any other case it writes nothing, and push.lua handles the push. It is tried before the
-- library is made, since making the library's functions costs more than a small push.
-- Defines: plain_push, plain_reply.

-- plain_push returns the reply, or nil if the push is not the usual one.
local function plain_push()
  local call, byte, ARGV, layout = redis.call, string.byte, ARGV, ARGV[2]
  local META, JOBS, READY, CLAIMS = unpack(KEYS)

  local record = ARGV[3] == '' and call('GET', META)
  if not record or string.sub(record, 5, 5 + #layout) ~= layout .. ' ' then return end
  local base, index, paused = string.sub(META, 1, -2), byte(record) == 49, byte(record, 3) == 49 -- 49 is '1'
  local BYID = base .. 'i'
  if index then call('EXISTS', BYID, META) end -- fails if another server has one of them

  local now = ARGV[1]
  if now == '' then
    local t = call('TIME')
    now = string.format('%d', t[1] * 1000000 + t[2]) -- a number would be printed digit by digit
  end

  local id, first = ARGV[4], nil
  if not ARGV[6] then -- one entry
    if call('HEXISTS', CLAIMS, id) == 1 or call('HSETNX', JOBS, id, ARGV[5]) == 0 then return end
    call('ZADD', READY, now, id)
    if index then call('ZADD', BYID, '0', id) end
    first = call('ZRANGE', READY, '0', '0')[1] == id
  else
    local new, ids, timed, listed, n = {}, {}, {}, {}, 0
    for i = 4, #ARGV, 2 do
      id = ARGV[i]
      if new[id] then return end
      new[id], n = true, n + 1
      ids[n], timed[2 * n - 1], timed[2 * n], listed[2 * n - 1], listed[2 * n] = id, now, id, '0', id
    end

    local claims = call('HLEN', CLAIMS) > 0
    for i = 1, claims and n or 0 do if call('HEXISTS', CLAIMS, ids[i]) == 1 then return end end
    for i = 1, n, 16 do -- values may be large, and the first one found is enough
      local some = call('HMGET', JOBS, unpack(ids, i, math.min(i + 15, n)))
      for k = 1, #some do if some[k] then return end end
    end

    call('HSET', JOBS, unpack(ARGV, 4))
    call('ZADD', READY, unpack(timed))
    if index then call('ZADD', BYID, unpack(listed)) end
    first = new[call('ZRANGE', READY, '0', '0')[1]]
  end

  if first and not paused then redis.pcall('SPUBLISH', base .. 'wake', '') end
  return tonumber(now)
end

local plain_reply = plain_push()
if plain_reply then return plain_reply end
