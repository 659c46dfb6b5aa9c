-- Notes of large claims. A claim is one value of a hash, and Redis can't read a part of such a
-- value. So a note has the claim's receipt and size.
-- Defines: NOTED, note, note_reader.
--
-- A note is a field of the lease; lib/lease.lua has its format, and the field noted. A claim
-- without a note, or with another length than its note has, is read.

-- NOTED is the largest size in bytes of a claim that gets no note.
local NOTED = 4096

-- note returns the note of a claim with the given length.
local function note(receipt, length, count, size, alone)
  return receipt .. struct.pack('>I4I4I4B', length, count, size, alone and 1 or 0)
end

-- note_reader returns a function that returns, for the claim of an id, its receipt, the number of
-- its payloads, their bytes and whether it runs alone, or nil if it has no note.
local function note_reader(CLAIMS, LEASE)
  local kept
  return function(id)
    local length = redis.call('HSTRLEN', CLAIMS, id)
    if length <= NOTED then return end
    if kept == nil then
      local tokens = redis.call('HMGET', LEASE, 'token', 'noted')
      kept = tokens[1] and tokens[1] == tokens[2]
    end

    local found = kept and redis.call('HGET', LEASE, ':' .. id)
    if not found or #found ~= 29 then return end
    local of, count, size, alone = struct.unpack('>I4I4I4B', found, 17)
    if of == length then return string.sub(found, 1, 16), count, size, alone == 1 end
  end
end
