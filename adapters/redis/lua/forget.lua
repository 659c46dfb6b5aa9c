#!lua flags=allow-oom
-- Marks a queue's record as one that is being forgotten, or removes it if it still
-- has that mark: whoever declares the queue in between takes it away.
-- KEYS: queues
-- ARGV: 1 name, 2 mark, 3 remove (1 or 0)
-- Returns the record if the queue was declared in between, or nil

local name, mark, remove = ARGV[1], ARGV[2], ARGV[3] == '1'
local record = redis.call('HGET', KEYS[1], name)
if not record then return false end
local plain, marked = string.match(record, '^(%d %d %d+ %d+ %d+) ?(.*)$')
if not remove then
  redis.call('HSET', KEYS[1], name, plain .. ' ' .. mark)
elseif marked == mark then
  redis.call('HDEL', KEYS[1], name)
elseif marked == '' then
  return record
end
return false
