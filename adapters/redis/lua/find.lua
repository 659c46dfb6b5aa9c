#!lua flags=no-writes
-- Finds an id everywhere, or the next payloads of what it found before.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 id; then, for the next payloads, 3 whether those of the dead letter
--   or of the queued job (1 or 0), 4 score and 5 data of the last one
-- Returns {'ok', queued, claim, cancel, dead, standing, token, expires, damaged}: queued and dead as
--   {PerformAt, packed job, whether it has more payloads (1 or 0)} or nil, the claim and its
--   cancel as stored; token and expires are those of the current lease, or 0; standing as {now, paused (1 or 0),
--   owner, token, expires, claimed, ahead, alone}, as ports.Standing says; damaged has a letter for each place, q, c
--   and d, where something of the id is at fault. For the next payloads
--   {'ok', queued or dead}
-- Uses: JOBS, READY, CLAIMS, DEAD, LEASE, CANCELS, ALONE, call, byte, band, precedes, clock, instant, read_meta, bounds,
--   packed, passing, items, queue, morgue, claim_weight, claim_alone, fault_of, current_token.

local now, id, dead, score, data = clock(ARGV[1]), ARGV[2], ARGV[3] == '1', ARGV[4], ARGV[5]
local function view(item, payloads, more)
  return {string.format('%.0f', instant(item.job.at)), packed.encode_with(item.job, payloads, packed.group(item.job)), more and 1 or 0}
end
local function queued_job() return queue.load({id}, {call('HGET', JOBS, id)}, true)[id] end
local function dead_letter() return morgue.load({id}, {call('HGET', DEAD, id)}, true)[id] end
if score then
  local item
  if dead then item = dead_letter() else item = queued_job() end
  return {'ok', passing(function() return item and view(item, items.after(item, score, data)) end) or false}
end

local function first_of(item)
  local n, size = bounds.left(bounds.new())
  local payloads, total = items.first(item, n, size)
  return view(item, payloads, #payloads < total)
end
local function found(item) return item and passing(first_of, item) or false end

local MAX_AHEAD = 1000

-- alone_claim returns the first id of the claimed jobs that run alone, of some MAX_AHEAD; nil if there is none.
local function alone_claim()
  local cursor, seen, first = '0', 0, nil
  repeat
    local some = call('HSCAN', CLAIMS, cursor, 'COUNT', 100)
    cursor, seen = some[1], seen + #some[2] / 2
    for i = 1, #some[2], 2 do
      local other, claim = some[2][i], some[2][i + 1]
      if claim_alone(claim) and (not first or precedes(other, first)) then first = other end
    end
  until cursor == '0' or seen >= MAX_AHEAD
  return first
end

-- ahead returns how many due jobs come before the queued one, and the id of one that runs alone before it.
local function ahead(alone_claims)
  local at = call('ZSCORE', READY, id)
  if not at or tonumber(at) > now then return 0, '' end
  local rank, alone = call('ZRANK', READY, id), alone_claims > 0 and alone_claim()
  if not alone and rank > 0 then
    local first = call('ZRANGE', READY, 0, 0)[1]
    local job = call('HGET', JOBS, first)
    alone = job and band(byte(job) or 0, ALONE) > 0 and first
  end
  return math.min(rank, MAX_AHEAD), alone or ''
end

local function found_claim()
  local value = call('HGET', CLAIMS, id)
  return value and pcall(claim_weight, value) and value
end

local function standing()
  local _, paused = read_meta()
  local lease = call('HMGET', LEASE, 'owner', 'token', 'expires', 'held', 'alone')
  local held = lease[4] == '1'
  local n, alone = ahead(tonumber(lease[5] or 0))
  return {now, paused and 1 or 0, held and lease[1] or '', held and tonumber(lease[2]) or 0, held and tonumber(lease[3]) or 0,
    math.min(call('HLEN', CLAIMS), MAX_AHEAD), n, alone}
end

local queued, claim, letter, damaged = found(queued_job()), found_claim(), found(dead_letter()), ''
for place, there in pairs({q = queued, c = claim or false, d = letter}) do
  if not there and fault_of(place, id) then damaged = damaged .. place end
end
local token, expires = current_token(LEASE, now)
return {'ok', queued, claim or false, call('HGET', CANCELS, id), letter, standing(), token, expires, damaged}
