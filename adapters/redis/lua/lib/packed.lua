-- How jobs and dead letters are packed: to be stored, in replies, and in the arguments of pushes
-- and imports. packed.go and letter.go of internal/record have the same formats.
-- Uses: sub, byte, char, pack, parse, band, floor, precedes, MAX_INSTANT.
-- Defines: WIDE, MANY, LISTED, ANNOTATED, FIRST, TAGS, FAILED, ALONE, SLOT, known_flags, damaged,
--   missing, readable, passing, unite_tags, packed.
--
-- A packed job is a byte of flags, then the parts that they announce, in this order:
--   score    of the only payload: 7 bytes of whole microseconds, or a double
--   first    8 bytes, FirstPush if that isn't the job's PerformAt (FIRST)
--   tags     2 bytes of length and the tags (TAGS)
--   slot     2 bytes of length and the slot (SLOT)
--   failure  RetryCount and Recoveries, 4 bytes each, then 4 bytes of length and the failures
--            (FAILED; with 2 Recoveries or more ALONE)
--   meta     of the only payload: 2 bytes of length and the Meta (ANNOTATED)
--   data     the rest
--
-- A packed dead letter begins with the name of its group behind a byte of length. Then it has a
-- byte of flags, and of the parts above score, tags, meta and data. With FAILED it has the length
-- and the failures in the place of failure. When it changed is the score of its id in DTIME.
--
-- Failures are a list, the newest first. Each has 8 bytes of time, the name of its server behind a
-- byte of length, and its text behind 4 bytes of length. Scripts carry a list as it is, in the field
-- failures of a record, which is empty without any.
--
-- The lowest two bits of the flags are the kind of the payloads. 0 is one payload whose score is in
-- microseconds, and WIDE is one payload with a double. LISTED is a few payloads, or those of a
-- claim: data is a count of 4 bytes, then the score as a double, lengths of 4 and 2 bytes, data and
-- Meta of each. With MANY data is empty: the payloads are a sorted set of the id's own, and their
-- Metas, if ANNOTATED, are fields "id NUL data" of a hash.

local WIDE, MANY, LISTED = 1, 2, 3 -- kinds
local ANNOTATED, FIRST, TAGS, FAILED, ALONE, SLOT = 4, 8, 16, 32, 64, 128

-- known_flags reports whether encode can have written these flags of a packed job or dead letter: the
-- record of a list leaves Metas to the list.
local function known_flags(flags) return flags % 8 ~= LISTED + ANNOTATED end

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

  -- fresh returns a fresh job without payloads that is due, and was first pushed, at an instant.
  local function fresh(at)
    return {at = at, first = at, retry = -1, recoveries = 0, failures = '', tags = '', slot = '', list = {}, many = false, annotated = false}
  end

  -- letter returns a dead letter without payloads and group that changed at an instant.
  local function letter(at)
    return {at = at, failures = '', tags = '', list = {}, many = false, annotated = false}
  end

  -- read_sized returns the text at pos, behind its length, and the position behind it.
  local function read_sized(format, text, pos)
    local n
    n, pos = parse(format, text, pos)
    check(pos + n <= #text + 1, 'it is cut short')
    return sub(text, pos, pos + n - 1), pos + n
  end

  -- open reads the flags at from into a record. It returns them, the kind of the payloads, the
  -- score of the only one, and the position behind that.
  local function open(record, text, from)
    local flags, pos, score = byte(text, from), from + 1, nil
    check(flags, 'it is empty')
    check(known_flags(flags), 'its flags are unknown')

    local kind = flags % 4
    record.many, record.annotated = kind == MANY, band(flags, ANNOTATED) > 0
    if kind == WIDE then
      score, pos = parse('>d', text, pos)
      check_score(score)
    elseif kind == 0 then
      score, pos = parse('>I7', text, pos)
      score = score / 1e6
    end
    return flags, kind, score, pos
  end

  -- read_tags reads the tags at pos into a record, and returns the position behind them.
  local function read_tags(record, flags, text, pos)
    if band(flags, TAGS) > 0 then record.tags, pos = read_sized('>I2', text, pos) end
    return pos
  end

  -- read_failures reads the failures at pos into a record, and returns the position behind them.
  local function read_failures(record, text, pos)
    record.failures, pos = read_sized('>I4', text, pos)
    local list, at = record.failures, 1
    while at <= #list do
      local node, n = byte(list, at + 8), nil
      check(node, 'its failures are cut short')
      n, at = parse('>I4', list, at + 9 + node)
      at = at + n
    end
    check(at == #list + 1, 'its failures are cut short')
    return pos
  end

  -- short_failures returns all failures if most is 0, and otherwise only the newest, with at most
  -- that many bytes of its text, cut between characters, as core.Failures.Short does. Below 0 there
  -- is no text.
  local function short_failures(failures, most)
    if failures == '' or most == 0 then return failures end
    local from = 10 + byte(failures, 9)
    local text, n = read_sized('>I4', failures, from), math.max(0, most)
    if n < #text then
      while n > 0 and byte(text, n + 1) >= 0x80 and byte(text, n + 1) < 0xC0 do n = n - 1 end
      text = sub(text, 1, n)
    end
    return sub(failures, 1, from - 1) .. pack('>I4', #text) .. text
  end

  -- read_list reads the payloads of a list into a record, at most the given number of them.
  local function read_list(record, text, from, most)
    local all, count, annotated = record.list, nil, false
    count, from = parse('>I4', text, from)
    for i = 1, math.min(count, most or count) do
      local score, n, m, at = parse('>dI4I2', text, from)
      from = at + n + m
      check_score(score)
      all[i] = {score = score, data = sub(text, at, at + n - 1), meta = sub(text, at + n, from - 1)}
      annotated = annotated or m > 0
    end
    check(most or from == #text + 1, 'it has more than it says')
    record.annotated = annotated
  end

  -- read_payloads reads into a record the payloads that it carries, from pos to its end, and
  -- returns the record. most, if given, bounds their number. If many is set, a set has them
  -- instead.
  local function read_payloads(record, kind, score, text, pos, most)
    if kind == LISTED then read_list(record, text, pos, most) return record end
    if kind == MANY then check(pos == #text + 1, 'it has more than it says') return record end

    local meta = ''
    if record.annotated then meta, pos = read_sized('>I2', text, pos) end
    record.list[1] = {score = score, data = sub(text, pos), meta = meta}
    return record
  end

  local MOST_SLOT = 512 -- ports.MaxLimiterKey

  -- decode_head returns the job that is packed at from, with PerformAt at and without its payloads,
  -- their kind, the score of the only one, and the position of its Meta or of the list.
  local function decode_head(text, at, from)
    local job = fresh(at)
    local flags, kind, score, pos = open(job, text, from)
    if band(flags, FIRST) > 0 then
      job.first, pos = parse('>I8', text, pos)
      check(job.first <= MAX_INSTANT, 'its first push is no instant')
    end

    pos = read_tags(job, flags, text, pos)
    if band(flags, SLOT) > 0 then
      job.slot, pos = read_sized('>I2', text, pos)
      check(job.slot ~= '' and #job.slot <= MOST_SLOT, 'its slot is no key of a limiter')
    end
    if band(flags, FAILED) > 0 then
      job.retry, job.recoveries, pos = parse('>i4I4', text, pos)
      pos = read_failures(job, text, pos)
    end
    check(kind ~= MANY or pos == #text + 1, 'it has more than it says')
    return job, kind, score, pos
  end

  -- decode returns the job that is packed, with PerformAt at. Its list has the payloads that it
  -- carries; most, if given, bounds their number. many is whether a set has the payloads instead,
  -- and annotated whether one may have a Meta. If from is given, the packed job begins there.
  local function decode(text, at, most, from)
    local job, kind, score, pos = decode_head(text, at, from or 1)
    return read_payloads(job, kind, score, text, pos, most)
  end

  -- group_of returns the group of a packed dead letter.
  local function group_of(text) return sub(text, 2, (byte(text) or 0) + 1) end

  -- decode_dead returns, as decode does, the dead letter that is packed, which changed at an
  -- instant.
  local function decode_dead(text, at)
    local n = byte(text, 1) or 0
    check(n > 0 and n <= 64 and #text > n, 'it has no group')

    local dead = letter(at)
    dead.group = group_of(text)
    local flags, kind, score, pos = open(dead, text, n + 2)
    check(flags < SLOT, 'its flags are unknown')
    pos = read_tags(dead, flags, text, pos)
    if band(flags, FAILED) > 0 then pos = read_failures(dead, text, pos) end
    return read_payloads(dead, kind, score, text, pos)
  end

  -- weigh returns how many payloads the packed job that begins at from carries, and their bytes. It
  -- fails where decode would.
  local function weigh(text, from)
    local job, kind, _, pos = decode_head(text, 0, from)
    local count, size, n, m, score = 1, 0, 0, 0, 0
    check(kind ~= MANY, 'a claim carries its payloads')
    if kind ~= LISTED then
      if job.annotated then n, pos = parse('>I2', text, pos); pos = pos + n end
      check(pos <= #text + 1, 'it is cut short')
      return 1, #text - pos + 1
    end

    count, pos = parse('>I4', text, pos)
    for _ = 1, count do
      score, n, m, pos = parse('>dI4I2', text, pos)
      check_score(score)
      pos, size = pos + n + m, size + n
    end
    check(pos == #text + 1, 'its length is not what it says')
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

  -- seal returns a record: before, the flags with those of the payloads, the score, the parts
  -- between score and payloads, and the given payloads, or the record's own for nil.
  local function seal(record, payloads, before, flags, parts)
    if record.many and not payloads then
      return before .. char(flags + MANY + (record.annotated and ANNOTATED or 0)) .. parts
    end
    local list = payloads or record.list
    if #list ~= 1 then return encode_list(list, before .. char(flags + LISTED) .. parts) end

    local p, score, meta = list[1], '', ''
    local micros = floor(p.score * 1e6 + 0.5)
    if micros >= 0 and micros <= MAX_INSTANT and micros / 1e6 == p.score then score = pack('>I7', micros)
    else flags, score = flags + WIDE, pack('>d', p.score) end
    if p.meta ~= '' then flags, meta = flags + ANNOTATED, pack('>I2', #p.meta) .. p.meta end
    return before .. char(flags) .. score .. parts .. meta .. p.data
  end

  -- encode_tags returns the flag of a record's tags, and the tags as they are packed.
  local function encode_tags(record)
    if record.tags == '' then return 0, '' end
    return TAGS, pack('>I2', #record.tags) .. record.tags
  end

  -- encode_failures returns a record's failures as they are packed.
  local function encode_failures(record) return pack('>I4', #record.failures) .. record.failures end

  -- encode_state returns the flags of the parts of a job between score and payloads, and these
  -- parts.
  local function encode_state(job)
    local flags, parts = encode_tags(job)
    if job.first ~= job.at then flags, parts = flags + FIRST, pack('>I8', job.first) .. parts end
    if job.slot ~= '' then flags, parts = flags + SLOT, parts .. pack('>I2', #job.slot) .. job.slot end

    if job.retry ~= -1 or job.recoveries > 0 or job.failures ~= '' then
      flags = flags + FAILED + (job.recoveries >= 2 and ALONE or 0)
      parts = parts .. pack('>i4I4', job.retry, job.recoveries) .. encode_failures(job)
    end
    return flags, parts
  end

  -- encode returns a job packed. It has the given payloads instead of its own, as claims and
  -- replies do, unless they are nil. before, if given, is the text that precedes it.
  local function encode(job, payloads, before)
    local flags, parts = encode_state(job)
    return seal(job, payloads, before or '', flags, parts)
  end

  -- encode_dead returns a dead letter packed, as encode does.
  local function encode_dead(dead, payloads)
    local flags, parts = encode_tags(dead)
    if dead.failures ~= '' then flags, parts = flags + FAILED, parts .. encode_failures(dead) end
    return seal(dead, payloads, char(#dead.group) .. dead.group, flags, parts)
  end

  -- without returns the packed job of a claim, which begins at from behind its PerformAt, without
  -- the payload at a position, from 0, and with another RetryCount and Recoveries. It returns nil
  -- if the claim has no such payload, or no other one; else also the bytes of that payload.
  -- Payloads are not decoded, since claims may be large.
  local function without(value, from, position, retry, recoveries)
    local job, kind, _, pos = decode_head(value, (parse('>I8', value, from - 8)), from)
    local count = kind == LISTED and parse('>I4', value, pos) or 1
    if count == 1 or position < 0 or position >= count then return end

    local list, size = pos + 4, 0
    local ended, behind = list, list
    for _ = 0, position do
      local _, n, m, data = parse('>dI4I2', value, behind)
      ended, behind, size = behind, data + n + m, n
    end

    job.retry, job.recoveries = retry, recoveries
    if position == 0 then job.slot = '' end
    local flags, parts = encode_state(job)
    local head = char(LISTED + flags) .. parts .. pack('>I4', count - 1)
    return head .. sub(value, list, ended - 1) .. sub(value, behind), size
  end

  -- decoded returns the result of decode, or of decode_dead, or nil if that fails.
  local function decoded(decoder, ...)
    local ok, job = pcall(decoder, ...)
    return ok and job or nil
  end

  packed = {fits = fits, fresh = fresh, decode = decode, decoded = decoded, weigh = weigh, encode = encode, without = without,
    letter = letter, short_failures = short_failures, group_of = group_of, decode_dead = decode_dead, encode_dead = encode_dead}
end
