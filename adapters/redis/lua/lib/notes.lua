-- Notes of large claims: a claim is one value of a hash, of which Redis reads no part, and a note says whose it is and how
-- much it has.
-- Defines: NOTED, note, note_reader.
--
-- A note is a field of the lease, a colon and the id: the claim's receipt, how many bytes it has as it is stored, how many
-- payloads, of how many bytes, and whether it runs alone. A claim that has none, or another length, is read. The lease's
-- field noted is the token of the last lease whose holder kept notes: if that is not the token of the lease, they are none.

-- NOTED is how many bytes a claim has at most that gets no note.
local NOTED = 4096

-- note returns the note of a claim of so many bytes.
local function note(receipt, length, count, size, alone)
  return receipt .. struct.pack('>I4I4I4B', length, count, size, alone and 1 or 0)
end

-- note_reader returns a function that returns, of the claim of an id, receipt, payloads, their bytes and whether it runs
-- alone; nil if it has no note.
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
