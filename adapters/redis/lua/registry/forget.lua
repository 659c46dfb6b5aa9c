#!lua flags=allow-oom
-- Begins a Forget by adding its nonce to the queue's record, in place of the mark that all shards
-- were declared. Or ends it by removing the record and the settings if the record still has the
-- nonce: a Declare in between removes the nonce. The format and the store's id are removed with the
-- last queue.
-- KEYS: queues
-- ARGV: 1 name, 2 nonce, 3 remove (1 or 0)
-- Returns the record if the queue was declared in between, or nil

local QUEUES = KEYS[1]
local name, nonce, remove = ARGV[1], ARGV[2], ARGV[3] == '1'

local record = redis.call('HGET', QUEUES, name)
if not record then return false end
local plain, stored = string.match(record, '^(%d %d %d+ %d+ %d+[=%d-]*) ?(.*)$')

if not remove then
  redis.call('HSET', QUEUES, name, plain .. ' ' .. nonce)
elseif stored == nonce then
  redis.call('HDEL', QUEUES, name, name .. '/settings')
  local others = redis.call('HEXISTS', QUEUES, '/format') + redis.call('HEXISTS', QUEUES, '/id')
  if redis.call('HLEN', QUEUES) == others then redis.call('HDEL', QUEUES, '/format', '/id') end
elseif stored == '' or stored == '+' then
  return record
end
return false
