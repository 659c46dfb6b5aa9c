#!lua
-- The usual pushes of several callers: of one entry each that is due now, and whose id is neither
-- queued nor claimed. For any other it writes nothing, and the caller sends it alone, by push.lua.
-- The library is not joined, since it binds the keys of one shard. Each push stands for itself, as
-- if a script of its own had stored it: one that fails ends neither the others nor the script.
-- KEYS: meta jobs ready claims of each shard
-- ARGV: 1 now or '', then for each shard: "shards generation", number of entries, then for each of
--   these: id, packed job that is due now
-- Returns now if all are stored, else {now, for each entry 1 if it is stored and 0 if not}

local call, byte, sub, KEYS, ARGV = redis.call, string.byte, string.sub, KEYS, ARGV

local now = ARGV[1]
if now == '' then
  local t = call('TIME')
  now = string.format('%d', t[1] * 1000000 + t[2]) -- a number would be printed digit by digit
end

local stored, asked, done = {tonumber(now)}, 0, 0

-- push stores entries of the shard whose keys begin at k. Their arguments begin at from.
local function push(k, layout, from, entries)
  local META, JOBS, READY, CLAIMS = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local record = call('GET', META)
  if not record or sub(record, 5, 5 + #layout) ~= layout .. ' ' then return end
  local base, index, paused = sub(META, 1, -2), byte(record) == 49, byte(record, 3) == 49 -- 49 is '1'
  local BYID = base .. 'i'
  if index then call('EXISTS', BYID, META) end -- fails if another server has one of them

  local new, id = {}, nil
  for n = 1, entries do
    id = ARGV[from + 2 * n - 2]
    if call('HEXISTS', CLAIMS, id) == 0 and call('HSETNX', JOBS, id, ARGV[from + 2 * n - 1]) == 1 then
      call('ZADD', READY, now, id)
      if index then call('ZADD', BYID, '0', id) end
      new[id], stored[asked + n + 1], done = true, 1, done + 1
    end
  end

  if not paused and next(new) and new[call('ZRANGE', READY, '0', '0')[1]] then
    redis.pcall('SPUBLISH', base .. 'wake', '')
  end
end

local at = 2
for k = 1, #KEYS, 4 do
  local entries = tonumber(ARGV[at + 1])
  for n = 1, entries do stored[asked + n + 1] = 0 end
  pcall(push, k, ARGV[at], at + 2, entries)
  asked, at = asked + entries, at + 2 + 2 * entries
end

if done == asked then return stored[1] end
return stored
