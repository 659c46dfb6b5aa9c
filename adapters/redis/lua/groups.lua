#!lua flags=no-writes
-- Counts the dead letters of shards by group: several of one server, or one of a Cluster.
-- KEYS: meta groups, of each shard
-- ARGV: 1 now or ''
-- Returns now, and for each shard a list of names and counts, as lib/groups.lua has them, or 'unknown'
-- Uses: clock.

local reply = {clock(ARGV[1])}
for i = 1, #KEYS, 2 do
  local known = redis.call('EXISTS', KEYS[i]) == 1
  reply[#reply + 1] = known and redis.call('HGETALL', KEYS[i + 1]) or 'unknown'
end
return reply
