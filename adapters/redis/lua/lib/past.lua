-- The records of what became of ids (docs/rules.md 14). A turn calls keep_past if it settles jobs,
-- and if it keeps records or the shard has some.
-- Uses: is_full.
-- Defines: past_args, keep_past, mark_reader, marked.
--
-- PAST has the record of each id: DoneAt (8 bytes), and what past.go of internal/record appends,
-- which begins with the size of the result (4 bytes). Its score is behind 16 more bytes, and its first
-- bit behind that is set if the score counts for the mark of the id. The mark is such a record too,
-- whose field is the id and a NUL. PTIME has the fields by DoneAt, and RESULTS the results by id, of
-- those that have one. The field past of the lease has the bytes of all results and the Age of the
-- last turn that has kept records (8 bytes each). It is there as long as the shard has records.
-- step/import_past.lua adds those of another queue.

-- past_args reads the arguments for the settlements of a turn, of which codes has a byte each. It
-- returns the record of each position, and its result, if there is one, and the number of
-- arguments; nil if a settlement leaves something, has a mark or has dropped stale payloads. from is
-- the index of the first argument.
local function past_args(codes, from)
  local PARTS, RECORD, RESULT, MARK = 4, 8, 16, 32 -- bits of a settlement's code, as in settlement.go of internal/record
  local records, results, n = {}, {}, 0
  for i = 1, #codes do
    local code = string.byte(codes, i)
    if code % RECORD >= PARTS or code >= MARK then return end
    if code >= RECORD then
      records[i], n = ARGV[from + n], n + 1
      if code >= RESULT then results[i], n = ARGV[from + n], n + 1 end
    end
  end
  return records, results, n
end

-- marked returns the score of a record as a number and as bytes, if it counts for the mark of its id.
local function marked(record)
  local SCORE, BEHIND = 29, 37
  if not record or #record < BEHIND or string.byte(record, BEHIND) < 128 then return end
  return (struct.unpack('>d', record, SCORE)), string.sub(record, SCORE, BEHIND - 1)
end

-- mark_reader checks the key of the records, and returns a function that returns the scores (8 bytes)
-- of the marks of the ids in claims, a list of ids and values in turn, or '' for an id without one.
local function mark_reader(LEASE)
  local PAST = string.sub(LEASE, 1, -2) .. 'o'
  redis.call('EXISTS', PAST)

  return function(claims)
    local fields, marks = {}, {}
    for i = 1, #claims, 2 do fields[i], fields[i + 1] = claims[i], claims[i] .. '\0' end
    local stored = #fields > 0 and redis.call('HMGET', PAST, unpack(fields)) or {}
    for i = 1, #stored, 2 do
      local mark, score = '', nil
      for k = i, i + 1 do
        local own, bytes = marked(stored[k])
        if own and (not score or own > score) then mark, score = bytes, own end
      end
      marks[#marks + 1] = mark
    end
    return marks
  end
end

-- keep_past checks the keys of the records, and returns a function that adds the records and the
-- marks of a turn and then removes those that are not kept. ids, records and results are lists with
-- gaps, of n entries. marks has ids and records of marks in turn. keep is Age, Count and Bytes (8 bytes
-- each, 0 for no limit), or less to keep no record. before is the lease's field past.
local function keep_past(LEASE, now, keep, before, ids, records, results, n, marks)
  local MOST_REMOVED, STEP = 500, 64 -- the first is core.MaxPastRemoved
  local call, pack, parse = redis.call, struct.pack, struct.unpack
  local base = string.sub(LEASE, 1, -2)
  local PAST, PTIME, RESULTS = base .. 'o', base .. 'ot', base .. 'or'
  call('EXISTS', PAST, PTIME, RESULTS)
  call('HLEN', PAST)
  call('ZCARD', PTIME)
  call('HLEN', RESULTS)

  local sum, age, most, most_bytes = 0, 0, 0, 0
  if before then sum, age = parse('>I8I8', before) end
  if #keep >= 24 then age, most, most_bytes = parse('>I8I8I8', keep) end
  local earliest = now - age

  -- sizes returns the sizes of the results of ids.
  local function sizes(some)
    local list = {}
    if sum == 0 then return list end
    for i, record in ipairs(call('HMGET', PAST, unpack(some))) do
      list[i] = record and #record >= 12 and parse('>I4', record, 9) or 0
    end
    return list
  end

  -- spare removes the large results of the turn if they are too much for a full server.
  local function spare()
    local SHORT, MOST = 128, 1024
    local size = 0
    for _, result in pairs(results) do size = size + #result end
    if size <= MOST or not is_full() then return end

    for i, result in pairs(results) do
      if #result > SHORT then records[i], results[i] = '\0\0\0\0' .. string.sub(records[i], 5), nil end
    end
  end

  -- add_marks adds the marks of the turn to fields and times. A mark is not lowered.
  local function add_marks(fields, times)
    local SCORE = 21 -- of a record without its DoneAt
    local names, highest = {}, {}
    for i = 1, #marks, 2 do
      local name, record = marks[i] .. '\0', marks[i + 1]
      if not highest[name] then names[#names + 1] = name end
      if not highest[name] or parse('>d', record, SCORE) > parse('>d', highest[name], SCORE) then highest[name] = record end
    end
    if #names == 0 then return end

    for i, stored in ipairs(call('HMGET', PAST, unpack(names))) do
      local record = highest[names[i]]
      if stored and #stored >= SCORE + 15 and parse('>d', stored, SCORE + 8) > parse('>d', record, SCORE) then record = string.sub(stored, 9) end
      fields[#fields + 1], fields[#fields + 2] = names[i], pack('>I8', now) .. record
      times[#times + 1], times[#times + 2] = now, names[i]
    end
  end

  -- add stores the records of the turn.
  local function add()
    local some, fields, times, values, gone = {}, {}, {}, {}, {}
    for i = 1, n do
      if records[i] then
        some[#some + 1] = ids[i]
        fields[#fields + 1], fields[#fields + 2] = ids[i], pack('>I8', now) .. records[i]
        times[#times + 1], times[#times + 2] = now, ids[i]
        if results[i] then values[#values + 1], values[#values + 2] = ids[i], results[i] end
      end
    end
    add_marks(fields, times)
    if #fields == 0 then return end

    for i, size in ipairs(#some > 0 and sizes(some) or {}) do
      sum = sum - size
      if size > 0 then gone[#gone + 1] = some[i] end
    end
    for i = 2, #values, 2 do sum = sum + #values[i] end

    call('HSET', PAST, unpack(fields))
    call('ZADD', PTIME, unpack(times))
    if #gone > 0 then call('HDEL', RESULTS, unpack(gone)) end
    if #values > 0 then call('HSET', RESULTS, unpack(values)) end
  end

  -- remove removes the first records that are not kept, and returns how many are left.
  local function remove()
    local left, removed, done = call('ZCARD', PTIME), 0, false
    while not done and left > 0 and removed < MOST_REMOVED do
      local step = math.min(MOST_REMOVED - removed, math.max(1, most > 0 and left - most or 1))
      if removed > 0 then step = math.min(MOST_REMOVED - removed, math.max(step, STEP)) end

      local first = call('ZRANGE', PTIME, 0, step - 1, 'WITHSCORES')
      local some, k = {}, 0
      for i = 1, #first, 2 do some[#some + 1] = first[i] end
      local bytes = sizes(some)
      for i = 1, #some do
        local removes = tonumber(first[2 * i]) < earliest or most > 0 and left > most or most_bytes > 0 and sum > most_bytes
        if not removes then done = true break end
        k, left, sum = i, left - 1, sum - (bytes[i] or 0)
      end

      if k > 0 then
        local had_results = #bytes > 0
        call('ZREMRANGEBYRANK', PTIME, 0, k - 1)
        call('HDEL', PAST, unpack(some, 1, k))
        if had_results then call('HDEL', RESULTS, unpack(some, 1, k)) end
      end
      removed = removed + k
    end
    return left
  end

  return function()
    spare()
    add()
    local left = remove()
    local after = pack('>I8I8', math.max(0, sum), age)
    if left == 0 then
      if before then call('HDEL', LEASE, 'past') end
    elseif after ~= before then call('HSET', LEASE, 'past', after) end
  end
end
