#!lua flags=allow-oom
-- Stores a changed record of a queue in a shard, and wakes the shard if it has work and is not
-- paused.
-- KEYS: meta ready
-- ARGV: 1 the queue's record, 2 its version, 3 channel
-- Returns {'ok'}, {'unknown'}, or {'later', record} if the shard has a later record, or another of
--   the same version, which stays

local META, READY = unpack(KEYS)
local record, version, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local old = redis.call('GET', META)
local before = tonumber(string.match(old or '', ' (%d+)[=%d-]*$'))
if not before then return {'unknown'} end -- a recount makes it anew
if before > version or before == version and old ~= record then return {'later', old} end

local work = redis.call('EXISTS', READY)
redis.call('SET', META, record)
if string.sub(record, 3, 3) == '0' and work == 1 then redis.pcall('SPUBLISH', channel, '') end
return {'ok'}
