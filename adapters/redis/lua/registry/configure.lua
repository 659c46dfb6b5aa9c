#!lua flags=allow-oom
-- Replaces the settings of a queue (ports.Operator.Configure), in a field of their own beside the
-- queue's record: "version json". So the shards have no copy of them, and the loss of the record
-- leaves them. forget.lua removes them.
-- KEYS: queues
-- ARGV: 1 name, 2 the new version, 3 the new settings as JSON
-- Returns {'ok'}, {'unknown'}, or {'conflict', settings} if the stored version is not the one before;
--   settings is '' if there are none. A version that can't be read is followed by each other one.

local QUEUES = KEYS[1]
local name, version, json = ARGV[1], ARGV[2], ARGV[3]
local field, new = name .. '/settings', version .. ' ' .. json

if redis.call('HEXISTS', QUEUES, name) == 0 then return {'unknown'} end
local stored = redis.call('HGET', QUEUES, field)
if stored == new then return {'ok'} end

local present = 0
if stored then present = tonumber(string.match(stored, '^([1-9]%d*) ') or '') end
if present and present > 2 ^ 53 then present = nil end
if present and present ~= tonumber(version) - 1 then return {'conflict', stored or ''} end

redis.call('HSET', QUEUES, field, new)
return {'ok'}
