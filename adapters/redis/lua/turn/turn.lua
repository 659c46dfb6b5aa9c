#!lua flags=allow-oom
-- Settles, renews and claims. turn_plain.lua handles the usual turn, and this file any other.
-- KEYS: meta jobs ready claims lease
-- ARGV: 1 now or '', 2 owner, 3 token, 4 number, 5 ttl in µs, 6 jobs wanted, 7 payloads per job,
--   8 bytes, 9 receipt of the claims, 10 claimer, 11 what is kept of records, as keep_past has it, and
--   a byte more if the marks of claims are wanted, 12 how many settlements; then their ids, their
--   receipts in one text, or one that all have, a byte of code each, and the texts for each that its
--   code requires; then, if it is resent, parts end or jobs begin, whether it is resent (1 or 0), the
--   parts as end_parts has them, and id and receipt of each job that begins
-- Returns {'ok', last, now, remaining, paused, head or -1, skipped, claims, cancels, not begun,
--   deferred, orphans, skipped parts}, and the marks of the claims, if they are wanted; claims, cancels
--   and orphans are id and value as they are stored. Or {'again', ...} for a repeat, {'unknown'},
--   {'lost'}, {'stale', last}, {'ahead', last}
-- Uses: JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID, DMETAS,
--   GROUPS, LEASE, CANCELS, call, sub, pack, parse, clock, instant, read_meta, bounds, plan,
--   queue, groups, morgue, first_due, readable, noted, claim_weight, claims_after, read_cancels,
--   hand_over, settle_claims, end_parts, begin_claims, merge_left, free_parked, claim_jobs, keep_past, mark_reader.
--
-- lib/lease.lua lists the fields of the lease. A field that every turn changes has to change in
-- turn_plain.lua as well: last, ttl, expires, processed, failed, large and the notes. The usual
-- turn leaves alone, handed, orphans and turned as they are: nothing in it would change them.
--
-- A claim is stored as receipt, begun (a byte), since (7 bytes), claimer, PerformAt, packed job.
-- turn_claim.lua and turn_plain.lua write it; end_parts and begin_claims in turn_settle.lua change
-- it; claim_from in lib/claims.lua and claim.go of internal/record read it. lib/packed.lua and
-- packed.go there have the job.

local ARGV = ARGV
-- Fails here, not in plan.write(), if another server has one of them.
call('EXISTS', PARKED, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME, DID, DMETAS, GROUPS, CANCELS)
local now, owner, token, number, ttl = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local receipt = ARGV[9]

local index, paused = read_meta()
if index == nil then return {'unknown'} end

-- The fields are read below by their positions here: lease[1] is the owner, lease[13] is past, and lease[14] stale.
local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'ttl', 'expires', 'alone', 'processed', 'failed',
  'handed', 'orphans', 'turned', 'past', 'stale')
if lease[1] ~= owner or lease[2] ~= token or lease[3] ~= '1' then return {'lost'} end
local last, alone, expires = tonumber(lease[4]), tonumber(lease[7] or 0), instant(now + ttl)
if number < last then return {'stale', last} end
if number > last + 1 then return {'ahead', last} end

local cancels = read_cancels()
local marks_of = #ARGV[11] % 8 == 1 and mark_reader(LEASE)

-- head_of returns the head to reply: at the latest now while orphans are left.
local function head_of(head, rest)
  if rest and not paused and (head < 0 or head > now) then return now end
  return head
end

-- repeated answers a repeat: the claims of this receipt, the orphans that the turn handed over,
-- and the present values.
local function repeated()
  local list, orphans = {}, {}
  for _, id in ipairs(claims_after('')) do
    local value = (noted(id) or receipt) == receipt and call('HGET', CLAIMS, id)
    if value and sub(value, 1, 16) == receipt then
      readable('c', id, claim_weight, value)
      list[#list + 1] = id
      list[#list + 1] = value
    end
  end

  if (lease[12] or '') ~= '' and parse('>I8', lease[12]) == last then
    orphans = hand_over(tonumber(token), sub(lease[12], 9), lease[10], bounds.new(), {})
  end

  local head = head_of(first_due(paused, alone, JOBS, READY, CLAIMS), lease[11] == '1')
  call('HSET', LEASE, 'ttl', ttl, 'expires', expires)
  return {'again', last, now, expires - now, paused and 1 or 0, head, {}, list, cancels, {}, {}, orphans, {}, marks_of and marks_of(list) or nil}
end

if number == last then return repeated() end

local settled = settle_claims(alone, now)
local resent, only_claims = ARGV[settled.last + 1] == '1', ARGV[12] == '0'
local changed, not_begun = {claims = {}, notes = {}, skipped = {}, marks = {}}, {}
if ARGV[settled.last + 2] then
  changed = end_parts(settled.last + 2, settled, cancels)
  not_begun = begin_claims(changed.last + 1, settled.gone, changed)
  only_claims = only_claims and #ARGV == settled.last + 2
end

local marks = settled.marks
for _, text in ipairs(changed.marks) do marks[#marks + 1] = text end
local keep_all = (ARGV[12] ~= '0' or changed.marked) and (#ARGV[11] >= 24 or lease[13]) and
  keep_past(LEASE, now, ARGV[11], lease[13], settled.freed, settled.records, settled.results, #settled.freed, marks)
local moved, dead = merge_left(settled.left)
local waiting = free_parked(settled.freed)

local bound, orphans, handed, rest = bounds.new(tonumber(ARGV[8])), {}, lease[10], false
if lease[11] == '1' then orphans, handed, rest = hand_over(tonumber(token), handed, '', bound, settled.gone) end

local claimed = claim_jobs({
  now = now, want = tonumber(ARGV[6]), per_job = tonumber(ARGV[7]), bytes = tonumber(ARGV[8]),
  receipt = receipt, claimer = ARGV[10], index = index, paused = paused, alone = settled.alone,
  freed = settled.freed, moved = moved, waiting = waiting,
  carried = bound,
})
local head = head_of(claimed.head, rest)

local open = {} -- the cancels whose claims stay
for i = 1, #cancels, 2 do
  if settled.gone[cancels[i]] then plan.hdel(CANCELS, cancels[i])
  else open[#open + 1] = cancels[i]; open[#open + 1] = cancels[i + 1] end
end
if only_claims and claimed.count == 0 and #orphans == 0 and not resent then
  local remaining = math.max(0, math.min(tonumber(lease[6]), now + tonumber(lease[5])) - now)
  return {'ok', last, now, remaining, paused and 1 or 0, head, settled.skipped, claimed.list, open, not_begun, {}, {}, {}}
end

local claims = {} -- that change or come
for id, value in pairs(changed.claims) do claims[#claims + 1], claims[#claims + 2] = id, value end
for _, value in ipairs(claimed.list) do claims[#claims + 1] = value end
if #claims > 0 then plan.hset_all(CLAIMS, claims) end

for _, id in ipairs(settled.freed) do if not claimed.chosen[id] then plan.hdel(CLAIMS, id) end end
for _, id in ipairs(claimed.whole) do plan.hdel(JOBS, id) end
for id, at in pairs(waiting) do
  if not moved[id] then plan.zadd(READY, at, id); plan.zrem(PARKED, id) end
end
for id, item in pairs(moved) do if not claimed.chosen[id] then queue.store(item, READY, index) end end
for _, item in ipairs(dead) do morgue.store(item) end

groups.finish()
local fields = {'last', number, 'ttl', ttl, 'expires', expires, 'alone', claimed.alone,
  'processed', tonumber(lease[8] or 0) + settled.processed, 'failed', tonumber(lease[9] or 0) + settled.failed}
if lease[11] == '1' then
  for _, v in ipairs({'handed', handed, 'orphans', rest and 1 or 0, 'turned', pack('>I8', number) .. lease[10]}) do fields[#fields + 1] = v end
end

for _, id in ipairs(settled.notes) do if not claimed.notes[id] then plan.hdel(LEASE, ':' .. id) end end
for id, text in pairs(changed.notes) do
  if text then fields[#fields + 1], fields[#fields + 2] = ':' .. id, text else plan.hdel(LEASE, ':' .. id) end
end
for id, text in pairs(claimed.notes) do fields[#fields + 1], fields[#fields + 2] = ':' .. id, text end
if settled.stale > 0 then fields[#fields + 1], fields[#fields + 2] = 'stale', tonumber(lease[14] or 0) + settled.stale end
if next(claimed.notes) then fields[#fields + 1], fields[#fields + 2] = 'large', 1 end
for i = 1, #fields, 2 do plan.hset(LEASE, fields[i], fields[i + 1]) end

plan.write()
if keep_all then keep_all() end
return {'ok', number, now, expires - now, paused and 1 or 0, head, settled.skipped, claimed.list, open, not_begun,
  settled.deferred, orphans, changed.skipped, marks_of and marks_of(claimed.list) or nil}
