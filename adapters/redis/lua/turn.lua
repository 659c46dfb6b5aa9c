#!lua flags=allow-oom
-- Settles, renews and claims. The usual turn does so in turn_plain.lua, and any other
-- here.
-- KEYS: meta jobs ready claims lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 number, 5 ttl in µs, 6 jobs wanted,
--   7 payloads per job, 8 bytes, 9 receipt of the claims, 10 claimer, 11 statistics
--   or '', 12 how many settlements; then their ids, their receipts in one text, or one
--   that all have, a byte of code each, and what becomes of those whose code says so;
--   then, unless neither is, whether it is resent (1 or 0), and id and receipt of what
--   begins
-- Returns {'ok', last, now, remaining, paused, head or -1, skipped, claims,
--   cancels, not begun}; claims are id, then PerformAt and packed job; cancels id, value. Or
--   {'again', ...} for a repeat, {'unknown'}, {'lost'}, {'stale', last},
--   {'ahead', last}
-- Uses: JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID,
--   DMETAS, LEASE, CANCELS, HISTORY, call, sub, clock, instant, read_meta, plan, queue, morgue,
--   first_due, claim_rest, settle_claims, begin_claims, merge_left, free_parked, claim_jobs.
--
-- A claim is stored as receipt, begun (a byte), since (7 bytes), claimer, PerformAt, packed job.
-- Claims of snapshots before 2026-11-22 have 8 bytes of since, the first of them 0: they have
-- not begun.

local ARGV = ARGV
-- Fails here, not in plan.write(), if another server has one of them.
call('EXISTS', PARKED, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID, DMETAS, CANCELS, HISTORY)
local now, owner, token, number, ttl = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local receipt, stats = ARGV[9], ARGV[11]

local index, paused = read_meta()
if index == nil then return {'unknown'} end
local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires', 'alone', 'processed', 'failed')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local last, alone, expires = tonumber(lease[4]), tonumber(lease[7] or 0), instant(now + ttl)
if number < last then return {'stale', last} end
if number > last + 1 then return {'ahead', last} end
local cancels = call('HGETALL', CANCELS)

-- repeated answers a repeat: the claims of this receipt, and what is so now.
local function repeated()
  local list, all = {}, call('HGETALL', CLAIMS)
  for i = 1, #all, 2 do
    if sub(all[i + 1], 1, 16) == receipt then
      list[#list + 1] = all[i]
      list[#list + 1] = claim_rest(all[i + 1])
    end
  end
  local head = first_due(paused, alone, JOBS, READY, CLAIMS)
  call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
  return {'again', last, now, expires - now, paused and 1 or 0, head, {}, list, cancels, {}}
end
if number == last then return repeated() end

local settled = settle_claims(alone)
local resent, begins = ARGV[settled.last + 1] == '1', ARGV[settled.last + 2] ~= nil
local begun, not_begun = begin_claims(settled.last + 2, settled.gone)
local moved, dead = merge_left(settled.left, now)
local waiting = free_parked(settled.freed)
local claimed = claim_jobs({
  now = now, want = tonumber(ARGV[6]), per_job = tonumber(ARGV[7]), bytes = tonumber(ARGV[8]),
  receipt = receipt, claimer = ARGV[10], index = index, paused = paused, alone = settled.alone,
  freed = settled.freed, moved = moved, waiting = waiting,
})

local open = {} -- the cancels whose claims stay
for i = 1, #cancels, 2 do
  if settled.gone[cancels[i]] then plan.hdel(CANCELS, cancels[i])
  else open[#open + 1] = cancels[i]; open[#open + 1] = cancels[i + 1] end
end
if ARGV[12] == '0' and stats == '' and claimed.count == 0 and not resent and not begins then
  local remaining = math.max(0, math.min(tonumber(lease[6]), now + tonumber(lease[5])) - now)
  return {'ok', last, now, remaining, paused and 1 or 0, claimed.head, settled.skipped, claimed.list, open, not_begun}
end

-- count plans to add the statistics, "slot=n slot=n", to the minute.
local function count()
  local DAY, MINUTE, sums, texts = 86400000000, 60000000, {}, {}
  local minute = string.format('%.0f', now - now % MINUTE)
  local there = call('HGET', HISTORY, minute)
  for slot, n in string.gmatch((there or '') .. ' ' .. stats, '(%d+)=(%d+)') do sums[slot] = (sums[slot] or 0) + n end
  for slot, n in pairs(sums) do texts[#texts + 1] = slot .. '=' .. string.format('%.0f', n) end
  if #texts > 0 then plan.hset(HISTORY, minute, table.concat(texts, ' ')) end
  for _, old in ipairs(there and {} or call('HKEYS', HISTORY)) do
    if tonumber(old) < minute - DAY then plan.hdel(HISTORY, old) end
  end
end
if stats ~= '' then count() end

local claims = claimed.stored -- that come or change
for _, value in ipairs(begun) do claims[#claims + 1] = value end
if #claims > 0 then plan.hset_all(CLAIMS, claims) end
for _, id in ipairs(settled.freed) do if not claimed.chosen[id] then plan.hdel(CLAIMS, id) end end
for _, id in ipairs(claimed.whole) do plan.hdel(JOBS, id) end
for id, at in pairs(waiting) do
  if not moved[id] then plan.zadd(READY, at, id); plan.zrem(PARKED, id) end
end
for id, item in pairs(moved) do if not claimed.chosen[id] then queue.store(item, READY, index) end end
for _, item in ipairs(dead) do morgue.store(item) end
plan.hset_all(LEASE, {'last', number, 'ttl', ttl, 'expires', expires, 'alone', claimed.alone,
  'processed', tonumber(lease[8] or 0) + settled.processed, 'failed', tonumber(lease[9] or 0) + settled.failed})
plan.write()
return {'ok', number, now, expires - now, paused and 1 or 0, claimed.head, settled.skipped, claimed.list, open, not_begun}
