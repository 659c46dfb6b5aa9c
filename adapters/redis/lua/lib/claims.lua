-- The claims of a shard, in order of id.
-- Uses: CLAIMS, CANCELS, LEASE, ALONE, known_flags, call, sub, byte, band, parse, precedes, bounds,
--   readable, packed, note_reader.
-- Defines: noted, claim_from, claim_weight, claim_alone, check_cancel, read_cancels, claims_after,
--   hand_over.

-- noted returns the contents of a claim's note.
local noted = note_reader(CLAIMS, LEASE)

-- claim_from returns where a stored claim's PerformAt, of 8 bytes, begins, and where its packed
-- job begins.
local function claim_from(value) return 27 + parse('>I2', value, 25) end

-- claim_weight returns the number of payloads of a stored claim, and their bytes. It fails if the
-- claim can't be read.
local function claim_weight(value)
  local from = claim_from(value)
  if parse('>I8', value, from) > 9007199254740992 then error('its time is no instant', 0) end
  return packed.weigh(value, from + 8)
end

-- claim_alone reports whether a claim runs alone. It reports false for one that can't be read.
local function claim_alone(value)
  local flags = #value > 26 and byte(value, claim_from(value) + 8) or 0
  return band(flags, ALONE) > 0 and known_flags(flags)
end

-- check_cancel fails if a stored cancel can't be read.
local function check_cancel(value)
  local drop = sub(value, 17)
  if drop ~= '0' and drop ~= '1' then error('its cancel is no receipt and a digit', 0) end
end

-- read_cancels returns the cancels of the shard as id, value, ...
local function read_cancels()
  local cancels = call('HGETALL', CANCELS)
  for i = 2, #cancels, 2 do readable('k', cancels[i - 1], check_cancel, cancels[i]) end
  return cancels
end

-- claims_after returns the ids of claimed jobs that follow the given one, in order, or all for ''.
-- Lua's sort is fast but follows the server's locale; if that is not the order of bytes, it sorts
-- again.
local function claims_after(after)
  local ids = {}
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    if after == '' or precedes(after, id) then ids[#ids + 1] = id end
  end

  table.sort(ids)
  for i = 2, #ids do
    if not precedes(ids[i - 1], ids[i]) then table.sort(ids, precedes) break end
  end
  return ids
end

-- hand_over returns claims of other tokens than the given one, as id, value, ...: those whose ids
-- follow after, or all for '', and don't follow to, '' for no bound, as far as the bound allows.
-- It skips the ids in gone. It also returns the id of the last one, or after if there is no claim,
-- and whether there are more.
local function hand_over(token, after, to, bound, gone)
  local list, last = {}, after
  for _, id in ipairs(claims_after(after)) do
    if to ~= '' and precedes(to, id) then break end
    local receipt, payloads, bytes = noted(id)
    local other = not gone[id] and not (receipt and parse('>I8', receipt) == token)
    if other and receipt and not bounds.fits(bound, payloads, bytes) then return list, last, true end

    local value = other and call('HGET', CLAIMS, id)
    if value and (#value < 8 or parse('>I8', value) ~= token) then
      local n, size = readable('c', id, claim_weight, value)
      if not bounds.fits(bound, n, size) then return list, last, true end
      bounds.count(bound, n, size)
      list[#list + 1], list[#list + 2], last = id, value, id
    end
  end
  return list, last, false
end
