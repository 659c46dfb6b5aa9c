#!lua flags=allow-oom
-- Stores the record of a queue unless there is one that can be read, and ends a Forget that is
-- under way. The record is a new one, or the one that a shard of the queue has kept. It also
-- stores the format of the data, unless there already is a newer one that this program may use:
-- see format.go; and the store's id, unless it has one. A version begins at the store's time. So a
-- Pause that was meant for a queue before a Forget, and reaches a shard after the next Declare, is
-- older than the shard's version.
-- KEYS: queues
-- ARGV: 1 name, 2 shards, 3 index (1 or 0), 4 format, 5 the oldest format whose programs may use
--   it, 6 now or '', 7 'new', the record of a shard, or '' to store none, 8 '' or the merge rule,
--   as lib/shard.lua describes it, 9 an id for the store if it has none
-- Returns nil if there is no record and none is to be stored; else the record, which lib/shard.lua
--   describes, with " +" if all shards of the queue were declared; or "format oldest" of a format
--   that only newer programs may use
-- Uses: clock.

local QUEUES = KEYS[1]
local name, shards, index, format, oldest, kept, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[7], ARGV[9]

local stored = redis.call('HGET', QUEUES, '/format')
local known, reader = string.match(stored or '0 0', '^(%d+) (%d+)$')
if tonumber(reader) > tonumber(format) then return stored end

local there = redis.call('HGET', QUEUES, name)
local record, rest
if there then record, rest = string.match(there, '^(%d %d [1-9]%d* %d+ %d+[=%d-]*)(.*)$') end
if not record and kept == '' then return false end

if tonumber(known) < tonumber(format) then redis.call('HSET', QUEUES, '/format', format .. ' ' .. oldest) end
redis.call('HSETNX', QUEUES, '/id', id)

if not record then
  record = kept
  if kept == 'new' then record = index .. ' 0 ' .. shards .. ' 1 ' .. string.format('%.0f', clock(ARGV[6])) .. ARGV[8] end
end

if rest == ' +' then return there end
if record ~= there then redis.call('HSET', QUEUES, name, record) end
return record
