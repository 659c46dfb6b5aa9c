#!lua flags=no-writes
-- Finds an id everywhere.
-- KEYS: all of the jobs of the shard
-- ARGV: 1 now or '', 2 id, 3 payloads of the queued job, 4 of the claim and 5 of the dead letter
--   to return at most, 6 the score that they follow and 7 how many payloads of that score they
--   follow, or 0 for the first ones
-- Returns {'ok', queued, claim, cancel, dead, standing, token, expires, damaged, record, result,
--   mark}: queued and dead as {PerformAt, packed job with those payloads, how many it has, whether others follow them (1
--   or 0)} or nil, the claim as {claim with those payloads, how many it has, whether others follow
--   them} or nil, and its cancel as stored; token and expires are those of the current lease, or
--   0; standing as {now, paused (1 or 0), owner, token, expires, claimed, ahead, alone}, as in
--   ports.Standing; damaged has a letter for each place, q, c and d, where a record of the id is
--   at fault; record, result and the record of the mark as stored, or nil
-- Uses: base, JOBS, READY, CLAIMS, DEAD, LEASE, CANCELS, ALONE, call, sub, byte, band, parse, precedes,
--   clock, instant, read_meta, bounds, packed, passing, items, queue, morgue, claim_from,
--   claim_weight, claim_alone, fault_of, current_token.

local now, id, score, skip = clock(ARGV[1]), ARGV[2], ARGV[6], tonumber(ARGV[7])
local bound, full = bounds.new(), false

-- some_of returns the payloads of an item to return, at most n, how many payloads it has, and
-- whether others follow them.
local function some_of(item, n)
  local rank, size = items.behind(item, score, skip), 0
  local most, left = bounds.left(bound)
  if full then most = 0 end

  local read, total = items.page(item, rank, math.min(n, most), left)
  local some = {}
  for _, p in ipairs(read) do
    if not bounds.fits(bound, 1, #p.data) then full = true break end
    bounds.count(bound, 1, #p.data)
    some[#some + 1] = p
  end

  full = full or #some < n and rank + #some < total
  return some, total, rank + #some < total and 1 or 0
end

local function view(item, n)
  local payloads, total, more = some_of(item, n)
  return {string.format('%.0f', instant(item.job.at)), item.area.encode(item.job, payloads), total, more}
end
local function queued_job() return queue.load({id}, {call('HGET', JOBS, id)}, true)[id] end
local function dead_letter() return morgue.load({id}, {call('HGET', DEAD, id)}, true)[id] end
local function found(item, n) return item and passing(view, item, tonumber(n)) or false end

-- found_claim returns the claim. Without a cursor it decodes no more payloads than it returns.
local function found_claim(n)
  local value = call('HGET', CLAIMS, id)
  local ok, count = pcall(claim_weight, value)
  if not value or not ok then return false end

  local from = claim_from(value) + 8
  local job = packed.decode(value, (parse('>I8', value, from - 8)), skip == 0 and n or nil, from)
  local payloads, total, more = some_of({id = id, job = job}, n)
  if skip == 0 then total, more = count, #payloads < count and 1 or 0 end
  return {packed.encode(job, payloads, sub(value, 1, from - 1)), total, more}
end

local MAX_AHEAD = 1000

-- alone_claim returns the first id of the claimed jobs that run alone, among at most MAX_AHEAD of
-- them, or nil.
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

-- ahead returns how many due jobs come before the queued one, and the id of one that runs alone
-- before it.
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

local function standing()
  local _, paused = read_meta()
  local lease = call('HMGET', LEASE, 'owner', 'token', 'expires', 'held', 'alone')
  local held = lease[4] == '1'
  local n, alone = ahead(tonumber(lease[5] or 0))
  return {now, paused and 1 or 0, held and lease[1] or '', held and tonumber(lease[2]) or 0, held and tonumber(lease[3]) or 0,
    math.min(call('HLEN', CLAIMS), MAX_AHEAD), n, alone}
end

local queued, claim = found(queued_job(), ARGV[3]), found_claim(tonumber(ARGV[4]))
local letter, damaged = found(dead_letter(), ARGV[5]), ''
for place, there in pairs({q = queued, c = claim, d = letter}) do
  if not there and fault_of(place, id) then damaged = damaged .. place end
end

local token, expires = current_token(LEASE, now)
local PAST, RESULTS = base .. 'o', base .. 'or'
call('EXISTS', PAST, RESULTS)
return {'ok', queued, claim, call('HGET', CANCELS, id), letter, standing(), token, expires, damaged,
  call('HGET', PAST, id), call('HGET', RESULTS, id), call('HGET', PAST, id .. '\0')}
