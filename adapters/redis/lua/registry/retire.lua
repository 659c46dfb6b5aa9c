#!lua flags=allow-oom
-- Removes a node, and wakes others if it was known.
-- KEYS: nodes, status
-- ARGV: 1 owner, 2 channel
-- Returns {}

local NODES, STATUS = KEYS[1], KEYS[2]
local owner, channel = ARGV[1], ARGV[2]
redis.call('HDEL', STATUS, owner)
if redis.call('HDEL', NODES, owner) == 1 then redis.pcall('SPUBLISH', channel, '') end
return {}
