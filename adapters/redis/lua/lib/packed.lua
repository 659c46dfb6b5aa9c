-- How jobs and dead letters are packed to be stored.
-- Uses: sub, byte, char, pack, parse, band, floor, MAX_INSTANT.
-- Defines: WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, ALONE, packed.
--
-- A packed job is one byte of flags, then what they announce:
--   score   7 bytes of whole microseconds, or a double (WIDE); for one payload
--   first   8 bytes, FirstPush if that isn't the job's PerformAt (FIRST)
--   failure RetryCount, Recoveries and error (FAILED; with 2 Recoveries or more ALONE)
--   meta    2 bytes of length and the Meta (TAGGED); for one payload
--   data    the rest
-- With LISTED, for a few payloads and in claims, data is a count of 4 bytes, then
-- the score as a double, lengths of 4 and 2 bytes, data and Meta of each. With
-- MANY it is empty: the payloads are a sorted set of the id's own, and their
-- Metas, if TAGGED, fields "id NUL data" of a hash.

local WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, ALONE = 1, 2, 4, 8, 16, 32, 64

local packed
do
  -- How many payloads, of how many bytes, a packed job carries: a sorted set of two
  -- takes over a kilobyte.
  local MOST_PAYLOADS, MOST_BYTES = 8, 2048

  -- fits reports whether a packed job can carry the payloads.
  local function fits(payloads)
    local size = 0
    for _, p in ipairs(payloads) do size = size + #p.data + #p.meta end
    return #payloads <= MOST_PAYLOADS and size <= MOST_BYTES
  end

  local function decode_list(packed_job, from)
    local all, count, tagged = {}, nil, false
    count, from = parse('>I4', packed_job, from)
    for i = 1, count do
      local score, n, m, at = parse('>dI4I2', packed_job, from)
      from = at + n + m
      all[i] = {score = score, data = sub(packed_job, at, at + n - 1), meta = sub(packed_job, at + n, from - 1)}
      tagged = tagged or m > 0
    end
    return all, tagged
  end

  -- decode returns the job that was packed, whose PerformAt is at. Its list is the payloads that
  -- it carries, many whether a set has them instead, and tagged whether one
  -- may have a Meta.
  local function decode(packed_job, at)
    local flags, pos, score, meta, n = byte(packed_job), 2, nil, '', 0
    local job = {at = at, first = at, retry = -1, recoveries = 0, error = '', list = {},
      many = band(flags, MANY) > 0, tagged = band(flags, TAGGED) > 0}
    local listed = band(flags, LISTED) > 0
    if not job.many and not listed then
      if band(flags, WIDE) > 0 then score, pos = parse('>d', packed_job, pos)
      else score, pos = parse('>I7', packed_job, pos); score = score / 1e6 end
    end
    if band(flags, FIRST) > 0 then job.first, pos = parse('>I8', packed_job, pos) end
    if band(flags, FAILED) > 0 then
      job.retry, job.recoveries, n, pos = parse('>i4I4I4', packed_job, pos)
      job.error, pos = sub(packed_job, pos, pos + n - 1), pos + n
    end
    if listed then job.list, job.tagged = decode_list(packed_job, pos) end
    if job.many or listed then return job end
    if job.tagged then
      n, pos = parse('>I2', packed_job, pos)
      meta, pos = sub(packed_job, pos, pos + n - 1), pos + n
    end
    job.list[1] = {score = score, data = sub(packed_job, pos), meta = meta}
    return job
  end

  local function encode_list(payloads)
    local parts = {pack('>I4', #payloads)}
    for _, p in ipairs(payloads) do
      parts[#parts + 1] = pack('>dI4I2', p.score, #p.data, #p.meta)
      parts[#parts + 1] = p.data
      parts[#parts + 1] = p.meta
    end
    return table.concat(parts)
  end

  -- encode returns a job packed.
  local function encode(job)
    local flags, score, first, failure, rest = 0, '', '', '', ''
    if job.many then
      flags = MANY + (job.tagged and TAGGED or 0)
    elseif #job.list ~= 1 then
      flags, rest = LISTED, encode_list(job.list)
    else
      local p = job.list[1]
      local micros = floor(p.score * 1e6 + 0.5)
      if micros >= 0 and micros <= MAX_INSTANT and micros / 1e6 == p.score then score = pack('>I7', micros)
      else flags, score = WIDE, pack('>d', p.score) end
      rest = p.data
      if p.meta ~= '' then flags, rest = flags + TAGGED, pack('>I2', #p.meta) .. p.meta .. rest end
    end
    if job.first ~= job.at then flags, first = flags + FIRST, pack('>I8', job.first) end
    if job.retry ~= -1 or job.recoveries > 0 or job.error ~= '' then
      flags = flags + FAILED + (job.recoveries >= 2 and ALONE or 0)
      failure = pack('>i4I4I4', job.retry, job.recoveries, #job.error) .. job.error
    end
    return char(flags) .. score .. first .. failure .. rest
  end

  -- encode_with returns a job packed that carries the given payloads instead of
  -- its own, as claims and replies do.
  local function encode_with(job, payloads)
    return encode({at = job.at, first = job.first, retry = job.retry, recoveries = job.recoveries,
      error = job.error, list = payloads})
  end

  packed = {fits = fits, decode = decode, encode = encode, encode_with = encode_with}
end
