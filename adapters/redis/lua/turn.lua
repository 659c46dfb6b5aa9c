#!lua flags=allow-oom
-- Settles, renews and claims.
-- KEYS: meta jobs ready claims lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 number, 5 ttl in µs, 6 jobs wanted,
--   7 payloads per job, 8 bytes, 9 mark of the claims, 10 claimer, 11 statistics
--   or '', 12 how many settlements; then their ids, their marks in one text, or one
--   that all have, a byte of code each, and what becomes of those whose code says so;
--   then, unless neither is, whether it is resent (1 or 0), and id and mark of what begins
-- Returns {'ok', last, now, remaining, paused, head or -1, skipped, claims,
--   cancels, not begun}; claims are id, then PerformAt and record; cancels id, value. Or
--   {'again', ...} for a repeat, {'unknown'}, {'lost'}, {'stale', last},
--   {'ahead', last}
-- A claim is stored as mark, begun (a byte), since (7 bytes), claimer, PerformAt, record.

local ARGV = ARGV
-- Fails here, not in write(), if another server has one of them.
call('EXISTS', PARKED, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID, DMETAS, CANCELS, HISTORY)
local now, owner, token, number, ttl = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local want, perjob, bytes = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local mark, claimer, stats = ARGV[9], ARGV[10], ARGV[11]
local MOST = 1000

local index, paused = queue()
if index == nil then return {'unknown'} end
local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires', 'alone', 'processed', 'failed')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local last = tonumber(lease[4])
if number < last then return {'stale', last} end
if number > last + 1 then return {'ahead', last} end
local alone, expires = tonumber(lease[7] or 0), within(now + ttl)
local cancels = call('HGETALL', CANCELS)

-- tail is PerformAt and record of a stored claim.
local function tail(value) return sub(value, 27 + parse('>I2', value, 25)) end

-- again answers a repeat: the claims of this mark, and what is so now.
local function again()
  local claims, held, head = {}, call('HGETALL', CLAIMS), -1
  for i = 1, #held, 2 do
    if sub(held[i + 1], 1, 16) == mark then
      claims[#claims + 1] = held[i]
      claims[#claims + 1] = tail(held[i + 1])
    end
  end
  local ready = call('ZRANGE', READY, 0, 0, 'WITHSCORES')
  if ready[1] and not paused and alone == 0 and
    (#held == 0 or byte(call('HGET', JOBS, ready[1])) < ALONE) then head = tonumber(ready[2]) end
  call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
  return {'again', last, now, expires - now, paused and 1 or 0, head, {}, claims, cancels, {}}
end
if number == last then return again() end
