#!lua flags=allow-oom
-- Notes whether an operator wants a node to drain, and wakes nodes if that has changed.
-- KEYS: nodes
-- ARGV: 1 now or '', 2 owner, 3 '1' to drain or '0', 4 channel
-- Returns {'ok'} or {'unknown'}
-- Uses: clock.

local NODES = KEYS[1]
local now, owner, asks, channel = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local value = redis.call('HGET', NODES, owner) or ''
local started, till, length, asked, node = string.match(value, '^(%d+) (%d+) (%d+) (%d) (.*)$')
if not till or tonumber(till) <= now then return {'unknown'} end

if asked ~= asks then
  redis.call('HSET', NODES, owner, started .. ' ' .. till .. ' ' .. length .. ' ' .. asks .. ' ' .. node)
  redis.pcall('SPUBLISH', channel, '')
end
return {'ok'}
