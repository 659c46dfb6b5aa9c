-- Faults of the stored data of an id in a place: q for queued, c for claimed, k for the cancel of a
-- claimed one, d for dead.
-- Uses: META, JOBS, READY, PARKED, CLAIMS, CANCELS, DEAD, DTIME, PAYLOADS, DPAYLOADS, call,
--   packed, claim_weight, check_cancel.
-- Defines: hash_of, set_key, lists_of, fault_of.

local hash_of = {q = JOBS, c = CLAIMS, k = CANCELS, d = DEAD}
local set_key = {q = PAYLOADS, d = DPAYLOADS}
local lists_of = {q = {READY, PARKED}, d = {DTIME}} -- an id must be in one of them

-- fault_of returns what is at fault, and why: 'record' for the record, with its payloads; 'set'
-- for payloads without a record that refers to them; 'list' for a list with an id that has no
-- record; 'unlisted' if lists lack a readable record. It returns nil if there is no fault.
local function fault_of(place, id)
  local stored = call('HGET', hash_of[place], id)
  if not set_key[place] then
    local ok, why = pcall(place == 'c' and claim_weight or check_cancel, stored)
    if stored and not ok then return 'record', why end
    return
  end

  local ok, job = pcall(place == 'd' and packed.decode_dead or packed.decode, stored, 0)
  if stored and not ok then return 'record', job end

  local set, listed = set_key[place] .. id, false
  local there = call('EXISTS', set, META) == 2
  for _, list in ipairs(lists_of[place]) do listed = listed or call('ZSCORE', list, id) end
  if not stored and (there or listed) then return there and 'set' or 'list', 'its record is lost' end

  if not stored then return end
  if there and not job.many then return 'set', 'its record does not tell of its payloads' end
  if job.many and not there then return 'record', 'its payloads are lost' end
  if there and type(redis.pcall('ZCARD', set)) ~= 'number' then return 'record', 'its payloads are no sorted set' end
  if not listed then return 'unlisted', 'no list has it' end
end
