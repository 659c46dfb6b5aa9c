#!lua flags=no-writes
-- Counts what a shard holds.
-- KEYS: meta ready parked claims rid dead lease
-- ARGV: 1 now or ''
-- Returns {'ok', now, counts, owner, token, expires}, counts as lib/counts.lua
--   says, or {'unknown'}
-- Uses: clock, counts.

local META, READY, PARKED, CLAIMS, RID, DEAD, LEASE = unpack(KEYS)
local now = clock(ARGV[1])
if redis.call('EXISTS', META) == 0 then return {'unknown'} end
local lease = redis.call('HMGET', LEASE, 'owner', 'token', 'expires', 'held')
local held = lease[4] == '1'
return {'ok', now, counts(READY, PARKED, CLAIMS, RID, DEAD, LEASE),
  held and lease[1] or '', held and tonumber(lease[2]) or 0, held and tonumber(lease[3]) or 0}
