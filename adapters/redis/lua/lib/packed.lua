-- How jobs and dead letters are packed to be stored.
-- Uses: sub, byte, char, pack, parse, band, floor, precedes, MAX_INSTANT.
-- Defines: WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, ALONE, damaged, missing, readable, passing,
--   MARK, cut_tags, unite_tags, packed.
--
-- A packed job is one byte of flags, then the fields that they announce:
--   score   7 bytes of whole microseconds, or a double (WIDE); for one payload
--   first   8 bytes, FirstPush if that isn't the job's PerformAt (FIRST)
--   failure RetryCount, Recoveries and error (FAILED; with 2 Recoveries or more ALONE). The tags
--           stand before the error, as cut_tags has it, so programs that don't know tags take them
--           for a part of it
--   meta    2 bytes of length and the Meta (TAGGED); for one payload
--   data    the rest
-- With LISTED, for a few payloads and in claims, data is a count of 4 bytes, then the score as a
-- double, lengths of 4 and 2 bytes, data and Meta of each. With MANY it is empty: the payloads are
-- a sorted set of the id's own, and their Metas, if TAGGED, fields "id NUL data" of a hash.
--
-- A dead letter is packed behind the name of its group. That name is behind its own length, a
-- byte.

local WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, ALONE = 1, 2, 4, 8, 16, 32, 64

-- damaged ends the script, which has not written anything, because the record of an id in a place
-- can't be read: q for queued, c for claimed, k for the cancel of a claimed one, d for dead, s for
-- a schedule, whose id is its field in lib/schedules.lua. The caller sets the record aside and runs
-- the script again.
local function damaged(place, id, why)
  error('damaged: ' .. place .. ' ' .. string.gsub(id, '.', function(c) return string.format('%02x', byte(c)) end) .. ' ' .. tostring(why))
end

-- missing does the same if a key lacks something of an id in a place that another key refers to.
-- It is lost, or on another server of a Cluster; the caller finds out which.
local function missing(place, id, why) damaged(place, id, 'missing: ' .. why) end

-- readable returns the results of a function that decodes the record of an id in a place.
local function readable(place, id, decoder, ...)
  local ok, a, b = pcall(decoder, ...)
  if not ok then damaged(place, id, a) end
  return a, b
end

-- passing returns the results of a function, or nil if the function calls damaged or missing.
local function passing(f, ...)
  local ok, a, b = pcall(f, ...)
  if ok then return a, b end
  if type(a) ~= 'string' or not string.find(a, 'damaged: ', 1, true) then error(a, 0) end
end

-- MARK stands before and behind tags. No tag has a control character.
local MARK = char(30)

-- cut_tags returns the tags that stand before an error text, or '', and the text. ports/storekit
-- has the form in its WithTags.
local function cut_tags(text)
  if byte(text) ~= 30 then return '', text end
  local last = string.find(text, MARK, 2, true)
  if not last then return '', text end
  return sub(text, 2, last - 1), sub(text, last + 1)
end

-- unite_tags returns the first 8 tags, in order of their bytes, that one of two lists has.
local function unite_tags(a, b)
  if b == '' or a == b then return a end
  if a == '' then return b end
  local MOST, all, known = 8, {}, {}
  for tag in string.gmatch(a .. char(31) .. b, '[^' .. char(31) .. ']+') do
    if not known[tag] then known[tag], all[#all + 1] = true, tag end
  end
  table.sort(all, precedes)
  return table.concat(all, char(31), 1, math.min(MOST, #all))
end

local packed
do
  -- check fails if the decoded value is not one that encode has written.
  local function check(holds, why) if not holds then error(why, 0) end end

  local function check_score(score) check(score == score and score < math.huge and score > -math.huge, 'a score is no number') end

  -- How many payloads, and how many bytes of them, a packed job carries: a sorted set of two takes
  -- over a kilobyte.
  local MOST_PAYLOADS, MOST_BYTES = 8, 2048

  -- fits reports whether a packed job can carry the payloads.
  local function fits(payloads)
    local size = 0
    for _, p in ipairs(payloads) do size = size + #p.data + #p.meta end
    return #payloads <= MOST_PAYLOADS and size <= MOST_BYTES
  end

  -- decode_list returns payloads of a list, whose number most bounds, and whether one of them has a
  -- Meta.
  local function decode_list(packed_job, from, most)
    local all, count, tagged = {}, nil, false
    count, from = parse('>I4', packed_job, from)
    for i = 1, math.min(count, most or count) do
      local score, n, m, at = parse('>dI4I2', packed_job, from)
      from = at + n + m
      check_score(score)
      all[i] = {score = score, data = sub(packed_job, at, at + n - 1), meta = sub(packed_job, at + n, from - 1)}
      tagged = tagged or m > 0
    end
    check(most or from == #packed_job + 1, 'it has more than it says')
    return all, tagged
  end

  -- decode_head returns the job that was packed, without its payloads, whether these are a list,
  -- the score of the only payload, and where its Meta or the list begins. The packed job begins at
  -- from.
  local function decode_head(packed_job, at, from)
    local flags, pos, score, n = byte(packed_job, from), from + 1, nil, 0
    check(flags, 'it is empty')
    check(flags < 2 * ALONE, 'its flags are unknown')
    local job = {at = at, first = at, retry = -1, recoveries = 0, error = '', tags = '', list = {},
      many = band(flags, MANY) > 0, tagged = band(flags, TAGGED) > 0}
    local listed = band(flags, LISTED) > 0
    if not job.many and not listed then
      if band(flags, WIDE) > 0 then score, pos = parse('>d', packed_job, pos); check_score(score)
      else score, pos = parse('>I7', packed_job, pos); score = score / 1e6 end
    end
    if band(flags, FIRST) > 0 then
      job.first, pos = parse('>I8', packed_job, pos)
      check(job.first <= MAX_INSTANT, 'its first push is no instant')
    end
    if band(flags, FAILED) > 0 then
      job.retry, job.recoveries, n, pos = parse('>i4I4I4', packed_job, pos)
      job.tags, job.error = cut_tags(sub(packed_job, pos, pos + n - 1))
      pos = pos + n
    end
    check(pos <= #packed_job + 1, 'it is cut short')
    check(not job.many or pos == #packed_job + 1, 'it has more than it says')
    return job, listed, score, pos
  end

  -- decode returns the job that was packed, with PerformAt at. Its list has the payloads that it
  -- carries; most, if given, bounds their number. many is whether a set has the payloads instead,
  -- and tagged whether one may have a Meta. If from is given, the packed job begins there.
  local function decode(packed_job, at, most, from)
    local job, listed, score, pos = decode_head(packed_job, at, from or 1)
    local meta, n = '', 0
    if listed then job.list, job.tagged = decode_list(packed_job, pos, most) end
    if job.many or listed then return job end
    if job.tagged then
      n, pos = parse('>I2', packed_job, pos)
      meta, pos = sub(packed_job, pos, pos + n - 1), pos + n
      check(pos <= #packed_job + 1, 'it is cut short')
    end
    job.list[1] = {score = score, data = sub(packed_job, pos), meta = meta}
    return job
  end

  -- weigh returns how many payloads the packed job that begins at from carries, and their bytes. It
  -- fails where decode would.
  local function weigh(packed_job, from)
    local job, listed, _, pos = decode_head(packed_job, 0, from)
    local count, size, n, m, score = 1, 0, 0, 0, 0
    check(not job.many, 'a claim carries its payloads')
    if not listed then
      if job.tagged then n, pos = parse('>I2', packed_job, pos); pos = pos + n end
      check(pos <= #packed_job + 1, 'it is cut short')
      return 1, #packed_job - pos + 1
    end
    count, pos = parse('>I4', packed_job, pos)
    for _ = 1, count do
      score, n, m, pos = parse('>dI4I2', packed_job, pos)
      check_score(score)
      pos, size = pos + n + m, size + n
    end
    check(pos == #packed_job + 1, 'its length is not what it says')
    return count, size
  end

  -- join joins texts of size bytes. table.concat copies long texts several times, and each
  -- concatenation once more, so it takes 40 at a time.
  local function join(parts, size)
    if size < 4096 * #parts then return table.concat(parts) end
    while #parts > 1 do
      local p, some = parts, {}
      for i = #p + 1, #p + 39 do p[i] = '' end
      for i = 1, #p - 39, 40 do
        some[#some + 1] = p[i] .. p[i + 1] .. p[i + 2] .. p[i + 3] .. p[i + 4] .. p[i + 5] .. p[i + 6] .. p[i + 7] ..
          p[i + 8] .. p[i + 9] .. p[i + 10] .. p[i + 11] .. p[i + 12] .. p[i + 13] .. p[i + 14] .. p[i + 15] ..
          p[i + 16] .. p[i + 17] .. p[i + 18] .. p[i + 19] .. p[i + 20] .. p[i + 21] .. p[i + 22] .. p[i + 23] ..
          p[i + 24] .. p[i + 25] .. p[i + 26] .. p[i + 27] .. p[i + 28] .. p[i + 29] .. p[i + 30] .. p[i + 31] ..
          p[i + 32] .. p[i + 33] .. p[i + 34] .. p[i + 35] .. p[i + 36] .. p[i + 37] .. p[i + 38] .. p[i + 39]
      end
      parts = some
    end
    return parts[1]
  end

  -- encode_list returns payloads as a list, after a text.
  local function encode_list(payloads, before)
    local parts, size = {before .. pack('>I4', #payloads)}, 0
    for _, p in ipairs(payloads) do
      parts[#parts + 1] = pack('>dI4I2', p.score, #p.data, #p.meta)
      parts[#parts + 1] = p.data
      if p.meta ~= '' then parts[#parts + 1] = p.meta end
      size = size + #p.data
    end
    return join(parts, size)
  end

  -- encode_state returns the flags of a job's FirstPush and failure, and both as they are packed.
  local function encode_state(job)
    local flags, first, failure = 0, '', ''
    if job.first ~= job.at then flags, first = FIRST, pack('>I8', job.first) end

    if job.retry ~= -1 or job.recoveries > 0 or job.error ~= '' or job.tags ~= '' then
      local text = job.error
      if job.tags ~= '' or byte(text) == 30 then text = MARK .. job.tags .. MARK .. text end
      flags = flags + FAILED + (job.recoveries >= 2 and ALONE or 0)
      failure = pack('>i4I4I4', job.retry, job.recoveries, #text) .. text
    end
    return flags, first, failure
  end

  -- encode returns a job packed, after a text if one is given.
  local function encode(job, before)
    local flags, score, rest, listed = 0, '', '', false
    if job.many then
      flags = MANY + (job.tagged and TAGGED or 0)
    elseif #job.list ~= 1 then
      flags, listed = LISTED, true
    else
      local p = job.list[1]
      local micros = floor(p.score * 1e6 + 0.5)
      if micros >= 0 and micros <= MAX_INSTANT and micros / 1e6 == p.score then score = pack('>I7', micros)
      else flags, score = WIDE, pack('>d', p.score) end
      rest = p.data
      if p.meta ~= '' then flags, rest = flags + TAGGED, pack('>I2', #p.meta) .. p.meta .. rest end
    end

    local state, first, failure = encode_state(job)
    flags = flags + state
    if listed then return encode_list(job.list, (before or '') .. char(flags) .. first .. failure) end
    return (before or '') .. char(flags) .. score .. first .. failure .. rest
  end

  -- without returns the packed job of a claim, which begins at from behind its PerformAt, without
  -- the payload at a position, from 0, and with another RetryCount and Recoveries. It returns nil
  -- if the claim has no such payload, or no other one; else also the bytes of that payload.
  -- Payloads are not decoded, since claims may be large.
  local function without(value, from, position, retry, recoveries)
    local job, listed, _, pos = decode_head(value, (parse('>I8', value, from - 8)), from)
    local count = listed and parse('>I4', value, pos) or 1
    if count == 1 or position < 0 or position >= count then return end

    local list, size = pos + 4, 0
    local ended, behind = list, list
    for _ = 0, position do
      local _, n, m, data = parse('>dI4I2', value, behind)
      ended, behind, size = behind, data + n + m, n
    end

    job.retry, job.recoveries = retry, recoveries
    local flags, first, failure = encode_state(job)
    local head = char(LISTED + flags) .. first .. failure .. pack('>I4', count - 1)
    return head .. sub(value, list, ended - 1) .. sub(value, behind), size
  end

  -- group returns what precedes a packed job: the group of a dead letter, or nothing for a queued
  -- job.
  local function group(job) return job.group and char(#job.group) .. job.group end

  -- decode_dead returns, as decode does, the dead letter that was packed, which changed at the
  -- given instant.
  local function decode_dead(packed_job, at)
    local n = byte(packed_job, 1) or 0
    check(n > 0 and n <= 64 and #packed_job > n, 'it has no group')
    local job = decode(packed_job, at, nil, n + 2)
    job.group = sub(packed_job, 2, n + 1)
    return job
  end

  -- encode_with returns a packed job that carries the given payloads instead of its own, as claims
  -- and replies do, after a text if one is given.
  local function encode_with(job, payloads, before)
    return encode({at = job.at, first = job.first, retry = job.retry, recoveries = job.recoveries,
      error = job.error, tags = job.tags, list = payloads}, before)
  end

  -- decoded returns the result of decode, or of decode_dead, or nil if that fails.
  local function decoded(decoder, ...)
    local ok, job = pcall(decoder, ...)
    return ok and job or nil
  end

  packed = {fits = fits, decoded = decoded, decode = decode, weigh = weigh, encode = encode, encode_with = encode_with, without = without,
    group = group, decode_dead = decode_dead}
end
