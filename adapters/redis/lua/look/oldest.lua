#!lua flags=no-writes
-- Returns the time from which the longest-waiting job of a shard waits.
-- KEYS: meta jobs ready parked
-- ARGV: 1 now or ''
-- Returns now, 1 if there is such a shard, and the instant or -1
-- Uses: call, clock, oldest.

return {clock(ARGV[1]), call('EXISTS', KEYS[1]), oldest(KEYS[2], KEYS[3], KEYS[4]) or -1}
