-- The schedules of a shard. A schedule is named by its id, NUL and its name, as its field.
-- Uses: base, plan.
-- Defines: SCHEDULES, TICKS, NAMED, schedules.
--
-- SCHEDULES is a hash of their records by field. A record is JSON, which ports/storekit has in
-- EncodeSchedule. TICKS is a sorted set of the fields of those that have a tick, by its time. NAMED
-- is a sorted set without scores that has each schedule twice: as n, name, NUL and id, and as i,
-- id, NUL and name. Each script that needs these keys declares them.

local SCHEDULES, TICKS, NAMED = base .. 's', base .. 'st', base .. 'sn'

local schedules
do
  -- decode returns the record of a field as a table. It fails if that is no such record.
  local function decode(record, field)
    local ok, s = pcall(cjson.decode, record)
    if not ok or type(s) ~= 'table' then error('it is no JSON object', 0) end
    if type(s.id) ~= 'string' or type(s.name) ~= 'string' or s.id .. '\0' .. s.name ~= field then
      error('it is not of its id and name', 0)
    end
    if type(s.revision) ~= 'number' then error('it has no revision', 0) end
    if s.tick ~= nil and type(s.tick) ~= 'number' then error('its tick is no number', 0) end
    return s
  end

  -- parts returns the id and the name of a field.
  local function parts(field) return string.match(field, '^([^%z]*)%z?(.*)$') end

  -- named returns the members of NAMED for a field.
  local function named(field)
    local id, name = parts(field)
    return 'n' .. name .. '\0' .. id, 'i' .. field
  end

  -- field_of returns the field of a member of NAMED.
  local function field_of(member)
    local first, second = parts(string.sub(member, 2))
    if string.sub(member, 1, 1) == 'n' then return second .. '\0' .. first end
    return first .. '\0' .. second
  end

  -- store plans to store the record of a field. tick is the time of its tick, or '' if it has none.
  local function store(field, record, tick)
    local by_name, by_id = named(field)
    plan.hset(SCHEDULES, field, record)
    plan.zadd(NAMED, '0', by_name)
    plan.zadd(NAMED, '0', by_id)
    if tick == '' then plan.zrem(TICKS, field) else plan.zadd(TICKS, tick, field) end
  end

  -- unlist plans to remove a field from all lists.
  local function unlist(field)
    local by_name, by_id = named(field)
    plan.zrem(TICKS, field)
    plan.zrem(NAMED, by_name)
    plan.zrem(NAMED, by_id)
  end

  -- remove plans to remove a schedule.
  local function remove(field)
    plan.hdel(SCHEDULES, field)
    unlist(field)
  end

  schedules = {decode = decode, parts = parts, named = named, field_of = field_of, store = store, unlist = unlist, remove = remove}
end
