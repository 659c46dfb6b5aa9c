-- What the scripts of a shard share; Go puts it in front of each of them.
--
-- A script reads and checks, plans its writes with hset, zadd, hdel and zrem,
-- and ends with write(): an error before that leaves nothing behind. In write()
-- each key gains before it loses, so that no key is empty in between: Redis
-- refuses to touch an absent key while its slot migrates.
--
-- A stored job or dead letter is one byte of flags, then what they announce:
--   score   7 bytes of whole microseconds, or a double (WIDE); for one payload
--   first   8 bytes, FirstPush if that isn't the time in the job's list (FIRST)
--   failure RetryCount, Recoveries and error (FAILED)
--   meta    2 bytes of length and the Meta (TAGGED); for one payload
--   data    the rest
-- With LISTED, for a few payloads and in claims, data is a count of 4 bytes, then
-- the score as a double, lengths of 4 and 2 bytes, data and Meta of each. With
-- MANY it is nothing: the payloads are a sorted set of the id's own, and their
-- Metas, if TAGGED, fields "id NUL data" of a hash.

local call, sub, byte, char = redis.call, string.sub, string.byte, string.char
local pack, parse, band, floor = struct.pack, struct.unpack, bit.band, math.floor
local META, JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT,
  DEAD, DTIME, DID, DMETAS, LEASE, CANCELS, HISTORY = unpack(KEYS)
local base = sub(META, 1, -2)
local WIDE, MANY, TAGGED, FIRST, FAILED, LISTED, RECOVERED = 1, 2, 4, 8, 16, 32, 64
local LIMIT = 9007199254740992 -- 2^53, the latest instant

-- clock is the instant given, or the server's; call it once.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

local function within(t) return math.max(0, math.min(t, LIMIT)) end

-- precedes compares bytes; Lua's < would follow the locale.
local function precedes(a, b)
  local n = math.min(#a, #b)
  for from = 1, n, 64 do
    if sub(a, from, from + 63) ~= sub(b, from, from + 63) then
      for i = from, n do
        local x, y = byte(a, i), byte(b, i)
        if x ~= y then return x < y end
      end
    end
  end
  return #a < #b
end

local function lower(p, q)
  if p.score ~= q.score then return p.score < q.score end
  return precedes(p.data, q.data)
end

-- fetch asks for members in calls that Lua's stack can hold.
local function fetch(command, key, members)
  if #members == 0 then return {} end
  if #members <= 1000 then return call(command, key, unpack(members)) end
  local all = {}
  for i = 1, #members, 1000 do
    local last = math.min(i + 999, #members)
    local some = call(command, key, unpack(members, i, last))
    for k = 1, last - i + 1 do all[i + k - 1] = some[k] end
  end
  return all
end

-- What is to be written: for each key what comes and what goes, and whole keys.
local hsets, zadds, hdels, zrems, unlinked = {}, {}, {}, {}, {}

local function plan(lists, key, a, b)
  local l = lists[key]
  if not l then lists[key] = {a, b} return end
  l[#l + 1] = a
  if b then l[#l + 1] = b end
end
local function hset(key, field, value) plan(hsets, key, field, value) end
local function zadd(key, score, member) plan(zadds, key, score, member) end
local function hdel(key, field) plan(hdels, key, field) end
local function zrem(key, member) plan(zrems, key, member) end

local function carry(command, lists)
  for key, l in pairs(lists) do
    for i = 1, #l, 1000 do call(command, key, unpack(l, i, math.min(i + 999, #l))) end
  end
end
local function write()
  carry('HSET', hsets)
  carry('ZADD', zadds)
  carry('HDEL', hdels)
  carry('ZREM', zrems)
  for _, key in ipairs(unlinked) do call('UNLINK', key) end
end

-- wake tells those who wait for the shard. It comes last: that a user may not
-- publish must not undo what is written.
local function wake() redis.pcall('SPUBLISH', base .. 'wake', '') end

-- entities makes the functions that take records apart; a script which only moves
-- whole ones does without, since making them is a third of a small turn.
--
-- An entity is what is stored of an id in the queue or the morgue, old, and what
-- shall be, job: its state, and its payloads in list. With job.many, list is only
-- what comes to the set.
local function entities()
  local queue = {hash = JOBS, metas = METAS, sets = base .. 'p:'}
  local morgue = {hash = DEAD, metas = DMETAS, sets = base .. 'd:'}

  -- How many payloads, of how many bytes, a record carries: a sorted set of two
  -- takes over a kilobyte.
  local FEW, SMALL = 8, 2048

  local function unlist_payloads(rec, from)
    local all, count, tagged = {}, nil, false
    count, from = parse('>I4', rec, from)
    for i = 1, count do
      local score, n, m, at = parse('>dI4I2', rec, from)
      from = at + n + m
      all[i] = {score = score, data = sub(rec, at, at + n - 1), meta = sub(rec, at + n, from - 1)}
      tagged = tagged or m > 0
    end
    return all, tagged
  end

  local function list_payloads(payloads)
    local parts = {pack('>I4', #payloads)}
    for _, p in ipairs(payloads) do
      parts[#parts + 1] = pack('>dI4I2', p.score, #p.data, #p.meta)
      parts[#parts + 1] = p.data
      parts[#parts + 1] = p.meta
    end
    return table.concat(parts)
  end

  local function small(payloads)
    local size = 0
    for _, p in ipairs(payloads) do size = size + #p.data + #p.meta end
    return #payloads <= FEW and size <= SMALL
  end

  local function decode(rec, at)
    local flags, pos, score, meta, n = byte(rec), 2, nil, '', 0
    local job = {at = at, first = at, retry = -1, recoveries = 0, error = '', list = {},
      many = band(flags, MANY) > 0, tagged = band(flags, TAGGED) > 0}
    local listed = band(flags, LISTED) > 0
    if not job.many and not listed then
      if band(flags, WIDE) > 0 then score, pos = parse('>d', rec, pos)
      else score, pos = parse('>I7', rec, pos); score = score / 1e6 end
    end
    if band(flags, FIRST) > 0 then job.first, pos = parse('>I8', rec, pos) end
    if band(flags, FAILED) > 0 then
      job.retry, job.recoveries, n, pos = parse('>i4I4I4', rec, pos)
      job.error, pos = sub(rec, pos, pos + n - 1), pos + n
    end
    if listed then job.list, job.tagged = unlist_payloads(rec, pos) end
    if job.many or listed then return job end
    if job.tagged then
      n, pos = parse('>I2', rec, pos)
      meta, pos = sub(rec, pos, pos + n - 1), pos + n
    end
    job.list[1] = {score = score, data = sub(rec, pos), meta = meta}
    return job
  end

  local function encode(job)
    local flags, score, first, failure, rest = 0, '', '', '', ''
    if job.many then
      flags = MANY + (job.tagged and TAGGED or 0)
    elseif #job.list ~= 1 then
      flags, rest = LISTED, list_payloads(job.list)
    else
      local p = job.list[1]
      local micros = floor(p.score * 1e6 + 0.5)
      if micros >= 0 and micros <= LIMIT and micros / 1e6 == p.score then score = pack('>I7', micros)
      else flags, score = WIDE, pack('>d', p.score) end
      rest = p.data
      if p.meta ~= '' then flags, rest = flags + TAGGED, pack('>I2', #p.meta) .. p.meta .. rest end
    end
    if job.first ~= job.at then flags, first = flags + FIRST, pack('>I8', job.first) end
    if job.retry ~= -1 or job.recoveries > 0 or job.error ~= '' then
      flags = flags + FAILED + (job.recoveries > 0 and RECOVERED or 0)
      failure = pack('>i4I4I4', job.retry, job.recoveries, #job.error) .. job.error
    end
    return char(flags) .. score .. first .. failure .. rest
  end

  -- load makes entities of the records that are stored for ids.
  local function load(ids, recs)
    local entities, found = {}, {}
    for i, id in ipairs(ids) do if recs[i] then found[#found + 1] = id end end
    local ready, parked = fetch('ZMSCORE', READY, found), fetch('ZMSCORE', PARKED, found)
    local k = 0
    for i, id in ipairs(ids) do
      if recs[i] then
        k = k + 1
        local job = decode(recs[i], tonumber(ready[k] or parked[k]))
        entities[id] = {id = id, area = queue, job = job,
          old = {at = job.at, place = ready[k] and READY or PARKED, retry = job.retry, many = job.many}}
      end
    end
    return entities
  end

  local function load_dead(ids)
    local entities, recs, times = {}, fetch('HMGET', DEAD, ids), fetch('ZMSCORE', DTIME, ids)
    for i, id in ipairs(ids) do
      if recs[i] then
        local job = decode(recs[i], tonumber(times[i]))
        entities[id] = {id = id, area = morgue, job = job, old = {at = job.at, many = job.many}}
      end
    end
    return entities
  end

  -- unite adds payloads to an entity's: for equal bytes the smaller score stays,
  -- and on a tie what was there.
  local function unite(e, coming)
    local there, by = e.job.list, e.by
    if not by then
      by = {}
      for _, p in ipairs(there) do by[p.data] = p end
      e.by = by
    end
    for _, p in ipairs(coming) do
      local q = by[p.data]
      if not q then
        q = {score = p.score, data = p.data, meta = p.meta}
        there[#there + 1], by[p.data] = q, q
      elseif p.score < q.score then
        q.score, q.meta = p.score, p.meta
      end
      if p.meta ~= '' then e.job.tagged = true end
    end
  end

  -- first is the n lowest payloads of an entity, in order, and how many it has.
  local function first(e, n)
    local job, key, by = e.job, e.area.sets .. e.id, {}
    local all, total = {}, #job.list
    if job.many then
      local stored, fields, tags = call('ZRANGE', key, 0, n - 1, 'WITHSCORES'), {}, {}
      if job.tagged then
        for i = 1, #stored, 2 do fields[#fields + 1] = e.id .. '\0' .. stored[i] end
        tags = fetch('HMGET', e.area.metas, fields)
      end
      for i = 1, #stored, 2 do
        local p = {score = tonumber(stored[i + 1]), data = stored[i], meta = tags[(i + 1) / 2] or ''}
        all[#all + 1], by[p.data] = p, p
      end
      total = call('ZCARD', key)
    end
    local datas = {}
    for i, p in ipairs(job.list) do datas[i] = p.data end
    local scores = job.many and fetch('ZMSCORE', key, datas) or {}
    for i, p in ipairs(job.list) do
      local there = tonumber(scores[i] or nil)
      if job.many and not there then total = total + 1 end
      if there and p.score < there and by[p.data] then
        by[p.data].score, by[p.data].meta = p.score, p.meta
      elseif not there or p.score < there then
        all[#all + 1] = p
      end
    end
    table.sort(all, lower)
    for i = #all, n + 1, -1 do all[i] = nil end
    return all, total
  end

  -- keep plans to store an entity's record and payloads. Those of e.taken leave
  -- its set.
  local function keep(e)
    local job, area = e.job, e.area
    local key, datas = area.sets .. e.id, {}
    if not job.many and not small(job.list) and #job.list > 1 then job.many = true end
    if job.many then
      for i, p in ipairs(job.list) do datas[i] = p.data end
      local scores = fetch('ZMSCORE', key, datas)
      for i, p in ipairs(job.list) do
        local there = tonumber(scores[i] or nil)
        if not there or p.score < there then
          zadd(key, p.score, p.data)
          if p.meta ~= '' then hset(area.metas, e.id .. '\0' .. p.data, p.meta)
          elseif there and job.tagged then hdel(area.metas, e.id .. '\0' .. p.data) end
        end
      end
      for _, p in ipairs(e.taken or {}) do
        zrem(key, p.data)
        if job.tagged then hdel(area.metas, e.id .. '\0' .. p.data) end
      end
    end
    hset(area.hash, e.id, encode(job))
  end

  -- drop plans to remove an entity's record and payloads.
  local function drop(e)
    hdel(e.area.hash, e.id)
    if not e.old.many then return end
    local key = e.area.sets .. e.id
    call('EXISTS', key) -- fails here, not in write(), if it has gone to another server
    if e.job.tagged then
      for _, data in ipairs(call('ZRANGE', key, 0, -1)) do hdel(e.area.metas, e.id .. '\0' .. data) end
    end
    unlinked[#unlinked + 1] = key
  end

  -- unlist plans to take a queued job out of every list but that of its time.
  local function unlist(id, retry, index)
    if index then zrem(BYID, id) end
    if retry >= 0 then zrem(RTIME, id); zrem(RID, id); zrem(RCOUNT, id) end
  end

  -- enqueue plans to store a queued job in its place; remove takes it out.
  local function enqueue(e, place, index)
    local id, job, old = e.id, e.job, e.old
    keep(e)
    if not old or old.at ~= job.at or old.place ~= place then zadd(place, job.at, id) end
    if old and old.place ~= place then zrem(old.place, id) end
    if index and not old then zadd(BYID, 0, id) end
    if job.retry < 0 then unlist(id, old and old.retry or -1, false)
    elseif not old or old.at ~= job.at or old.retry ~= job.retry then
      zadd(RTIME, job.at, id)
      zadd(RID, 0, id)
      zadd(RCOUNT, job.retry, id)
    end
  end

  local function remove(e, index)
    drop(e)
    zrem(e.old.place, e.id)
    unlist(e.id, e.old.retry, index)
  end

  -- bury plans to put payloads into the morgue; entities are those it holds.
  local function bury(entities, id, payloads, reason, now)
    local e = entities[id]
    if not e then
      e = {id = id, area = morgue, job = {list = {}, retry = -1, recoveries = 0, many = false, tagged = false}}
      entities[id] = e
    end
    e.job.at, e.job.first, e.job.error = now, now, reason
    unite(e, payloads)
    e.changed = true
  end

  local function keep_dead(e)
    keep(e)
    if not e.old or e.old.at ~= e.job.at then zadd(DTIME, e.job.at, e.id) end
    if not e.old then zadd(DID, 0, e.id) end
  end

  local function remove_dead(e)
    drop(e)
    zrem(DTIME, e.id)
    zrem(DID, e.id)
  end

  -- packed is a record that carries the given payloads, as claims and replies do.
  local function packed(job, payloads)
    return encode({at = job.at, first = job.first, retry = job.retry, recoveries = job.recoveries,
      error = job.error, list = payloads})
  end

  return {queue = queue, decode = decode, load = load, load_dead = load_dead, unite = unite, first = first,
    keep = keep, enqueue = enqueue, remove = remove, bury = bury, keep_dead = keep_dead,
    remove_dead = remove_dead, packed = packed}
end
