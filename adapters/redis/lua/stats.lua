#!lua flags=no-writes
-- Counts what shards hold: several of one server, or one of a Cluster.
-- KEYS: meta ready parked claims rid dead lease aside, of each shard
-- ARGV: 1 now or ''
-- Returns now, and for each shard {counts, owner, token, expires}, counts as lib/counts.lua
--   says, or 'unknown'
-- Uses: clock, counts.

local now = clock(ARGV[1])

local function stats(meta, ready, parked, claims, rid, dead, lease, aside)
  if redis.call('EXISTS', meta) == 0 then return 'unknown' end
  local all, owner, token, expires = counts(ready, parked, claims, rid, dead, lease, aside)
  return {all, owner, token, expires}
end

local reply = {now}
for i = 1, #KEYS, 8 do reply[#reply + 1] = stats(unpack(KEYS, i, i + 7)) end
return reply
