-- The usual turn: nothing is paused, cancelled or recovered, settled jobs leave nothing and have
-- no parked job, and claimed jobs have one payload each. In any other case it writes nothing, and
-- turn.lua handles the turn. It is tried before the library is made, since making the library's
-- functions costs more than a small turn. Both have the same effects, also on the fields of the
-- lease that turn.lua names: conformance runs turns of both kinds against one model.
-- Uses: NOTED, note, past_args, keep_past, mark_reader.
-- Defines: plain_turn, plain_reply.

-- plain_turn returns the reply, or nil if the turn is not the usual one.
local function plain_turn()
  local call, sub, byte, pack, parse, ARGV = redis.call, string.sub, string.byte, struct.pack, struct.unpack, ARGV
  local META, JOBS, READY, CLAIMS, LEASE = unpack(KEYS)
  local base = sub(META, 1, -2)
  local PARKED, CANCELS, BYID = base .. 'w', base .. 'k', base .. 'i'
  local ANNOTATED, FIRST, TAGS, ALONE = 4, 8, 16, 64 -- flags of a packed job, see lib/packed.lua
  local OTHERS = 2 + 32 + ALONE + 128 -- those of several payloads, a failure or a slot
  local PROCESSED, FAILED, PARTS = 1, 2, 4 -- bits of a settlement's code, as in settlement.go of internal/record; the third is of no usual turn

  local number, want, bytes, n = tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[8]), tonumber(ARGV[12])
  local keep, records, results = ARGV[11], nil, nil
  if ARGV[15 + n] then
    if #keep < 24 then return end
    local args
    records, results, args = past_args(ARGV[14 + n], 15 + n)
    if not records or ARGV[15 + n + args] then return end
    local size = 0
    for _, result in pairs(results) do size = size + #result end
    if size > 65536 then return end -- turn.lua counts them
  end
  local record = call('GET', META) -- lib/shard.lua has its format
  -- EXISTS fails while the slot migrates, since a key that is absent here may then be on another
  -- server.
  local lease = call('HMGET', LEASE, 'owner', 'token', 'held', 'last', 'alone', 'orphans', 'large', 'past')
  if not record or byte(record, 3) == 49 or lease[1] ~= ARGV[2] or lease[2] ~= ARGV[3] or lease[3] ~= '1' or
    lease[4] + 1 ~= number or (lease[5] or '0') ~= '0' or lease[6] == '1' then return end

  if call('EXISTS', CANCELS, PARKED) > 0 then
    if call('HLEN', CANCELS) > 0 then return end
    local parked = n > 0 and call('ZMSCORE', PARKED, unpack(ARGV, 13, 12 + n)) or {}
    for i = 1, #parked do if parked[i] then return end end
  end

  local index = byte(record) == 49 -- '1'
  local processed, failed, seen, ended = 0, 0, {}, {} -- ended are the notes of claims that end
  if n > 0 then
    local receipts, codes = ARGV[13 + n], ARGV[14 + n]
    local receipt = #receipts == 16 and receipts
    local own, large, size = pack('>I8', lease[2]), (lease[7] or '') ~= '', 0
    for i = 1, #receipts, 16 do large = large or sub(receipts, i, i + 7) ~= own end
    if large then -- then claims of another lease, or any claim if the lease lists large ones, may be large: see turn.lua
      for i = 1, n do
        local length = call('HSTRLEN', CLAIMS, ARGV[12 + i])
        size = size + length
        if length > NOTED then ended[#ended + 1] = ':' .. ARGV[12 + i] end
      end
      if size > 262144 then return end
    end

    local claimed = call('HMGET', CLAIMS, unpack(ARGV, 13, 12 + n))
    for i = 1, n do
      local id, value, code = ARGV[12 + i], claimed[i], byte(codes, i)
      if not value or seen[id] or sub(value, 1, 16) ~= (receipt or sub(receipts, 16 * i - 15, 16 * i)) then return end
      seen[id] = true
      if code % FAILED >= PROCESSED then processed = processed + 1 end
      if code % PARTS >= FAILED then failed = failed + 1 end
    end
  end

  local now = tonumber(ARGV[1])
  if not now then
    local t = call('TIME')
    now = t[1] * 1000000 + t[2]
  end

  -- behind returns how many bytes stand before the end of a text that follows its length.
  local function behind(packed_job, skip)
    return skip + 2 + (#packed_job < skip + 2 and 0 or parse('>I2', packed_job, skip + 1))
  end

  local ready, ids, count = call('ZRANGE', READY, 0, want, 'WITHSCORES'), {}, 0
  for i = 1, #ready, 2 do
    count = count + 1
    ids[count] = ready[i]
  end

  -- The beginning of each claim: receipt, begun (0) and since in 8 bytes, claimer. turn.lua has the format.
  local prefix, head, claims = ARGV[9] .. pack('>I8', now) .. ARGV[10], -1, {}
  local packed_jobs, before, read, taken, size, notes = nil, 0, 0, 0, 0, {'large', 1}
  for k = 1, count do
    if k > read then -- some at a time, since payloads may be large
      before, read = read, math.min(count, read + math.max(1, math.min(16, math.floor(k * 524288 / (size + 1)))))
      packed_jobs = call('HMGET', JOBS, unpack(ids, k, read))
    end

    local packed_job, at = packed_jobs[k - before], tonumber(ready[2 * k])
    local flags = packed_job and byte(packed_job)
    if not flags then return end
    local simple, skip = bit.band(flags, OTHERS) == 0, 8 + flags % 2
    if simple and flags >= ANNOTATED then
      if flags % TAGS >= FIRST then skip = skip + 8 end
      if flags >= TAGS then skip = behind(packed_job, skip) end
      if flags % FIRST >= ANNOTATED then skip = behind(packed_job, skip) end
    end
    if simple and #packed_job < skip then return end -- it is cut short
    if simple and flags % 2 > 0 and byte(packed_job, 2) % 128 == 127 and byte(packed_job, 3) >= 240 then return end -- no finite score

    size = size + #packed_job - skip
    if taken == want or at > now or simple and taken > 0 and size > bytes then
      if bit.band(flags, ALONE) > 0 then return end
      head = at
      break
    end

    if not simple then return end
    local claim = prefix .. pack('>I8', at) .. packed_job
    if #claim > NOTED then
      notes[#notes + 1], notes[#notes + 2] = ':' .. ids[k], note(ARGV[9], #claim, 1, #packed_job - skip, false)
    end
    claims[2 * k - 1], claims[2 * k] = ids[k], claim
    taken = k
  end

  if n + taken == 0 then return end

  local keep_all = n > 0 and (#keep >= 24 or lease[8]) and
    keep_past(LEASE, now, keep, lease[8], {unpack(ARGV, 13, 12 + n)}, records or {}, results or {}, n, {})
  local marks_of = #keep % 8 == 1 and mark_reader(LEASE)

  if taken > 0 then
    call('HSET', CLAIMS, unpack(claims))
    call('HDEL', JOBS, unpack(ids, 1, taken))
    call('ZREMRANGEBYRANK', READY, 0, taken - 1)
    if index then call('ZREM', BYID, unpack(ids, 1, taken)) end
  end

  if n > 0 then call('HDEL', CLAIMS, unpack(ARGV, 13, 12 + n)) end
  if processed > 0 then call('HINCRBY', LEASE, 'processed', processed) end
  if failed > 0 then call('HINCRBY', LEASE, 'failed', failed) end
  if #ended > 0 then call('HDEL', LEASE, unpack(ended)) end
  if #notes > 2 then call('HSET', LEASE, unpack(notes)) end

  if keep_all then keep_all() end

  local expires = math.min(now + ARGV[5], 9007199254740992)
  call('HSET', LEASE, 'last', ARGV[4], 'ttl', ARGV[5], 'expires', string.format('%d', expires))
  if marks_of then return {'ok', number, now, expires - now, 0, head, {}, claims, {}, {}, {}, {}, {}, marks_of(claims)} end
  return {'ok', number, now, expires - now, 0, head, {}, claims, {}, {}}
end

local plain_reply = plain_turn()
if plain_reply then return plain_reply end
