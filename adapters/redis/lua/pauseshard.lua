#!lua flags=allow-oom
-- Pauses or resumes a shard, and wakes it if it has work again.
-- KEYS: meta ready
-- ARGV: 1 paused (1 or 0), 2 version, 3 channel
-- Returns {'ok'} or {'unknown'}

local paused, version, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local meta = redis.call('HMGET', KEYS[1], 'shards', 'version')
if not meta[1] then return {'unknown'} end
if tonumber(meta[2]) > version then return {'ok'} end
local work = redis.call('EXISTS', KEYS[2])
redis.call('HSET', KEYS[1], 'paused', paused, 'version', version)
if paused == '0' and work == 1 then redis.pcall('SPUBLISH', channel, '') end
return {'ok'}
