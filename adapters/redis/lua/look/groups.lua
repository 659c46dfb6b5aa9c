#!lua flags=no-writes
-- Counts the dead letters of a shard of a Cluster by group, with the commands that a single server
-- gets as a transaction.
-- KEYS: meta groups
-- ARGV: 1 now or ''
-- Returns now, whether the shard exists (1 or 0), and names and counts, as lib/groups.lua has them
-- Uses: clock.

return {clock(ARGV[1]), redis.call('EXISTS', KEYS[1]), redis.call('HGETALL', KEYS[2])}
