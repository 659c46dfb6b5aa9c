-- Defines: current_token.
--
-- The fields of a shard's lease, a hash that stays when nobody holds it. Both turns are
-- turn/turn.lua and turn/turn_plain.lua.
--   owner, attempt, token: who has acquired it last, by which try, and the token. acquire writes
--     them.
--   held: 1, or 0 once it is released. acquire and release.
--   last: the number of the token's last turn, 0 before the first. acquire, both turns.
--   ttl, expires: the lease's length, and when it ends unless it is renewed. acquire, both turns,
--     renew.
--   handed: the id up to which claims of earlier leases were handed over, '' for all, or for none
--     while orphans is 1.
--   orphans: 1 if there are more of these, or 0. acquire and turn.lua write both.
--   turned: what a repeat of a turn returns as orphans: the number (8 bytes) of the last turn that
--     handed something over, and handed as it was before; '' for none. acquire, turn.lua.
--   alone: how many claims run alone. turn.lua, set_aside, recount.
--   processed, failed: the shard's counts. Both turns.
--   past: the bytes of the results of the shard's records, and their Age, see lib/past.lua. Both
--     turns, import_past, revive_purge.
--   superseded: the count of payloads that the merge rule has dropped. lib/items.lua.
--   stale: the count of stale payloads that were dropped. turn.lua, push.lua.
--   repeated: the count of entries that were dropped as repeats. push.lua.
--   large: not '' once a turn of this token has claimed a job that has a note. acquire, both turns.
--   noted: the token of the last lease whose holder kept notes. If that is not token, the notes
--     are invalid. acquire.
--   a colon and an id: the note of a large claim, see lib/notes.lua: the claim's receipt (16
--     bytes), its stored length, the number of its payloads and their bytes (4 bytes each), and
--     whether it runs alone (a byte). Both turns write and remove notes, acquire removes invalid
--     ones, and set_aside that of a damaged claim.

-- current_token returns the token of the lease that keeps others out now and when it ends, or 0
-- and 0.
local function current_token(key, now)
  local l = redis.call('HMGET', key, 'token', 'held', 'expires')
  if l[2] ~= '1' or tonumber(l[3]) <= now then return 0, 0 end
  return tonumber(l[1]), tonumber(l[3])
end
