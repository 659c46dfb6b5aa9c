#!lua flags=allow-oom
-- Changes what a queue's record has for a pause or a merge rule. The version orders these calls, so
-- that all shards end with the state of the last one.
-- KEYS: queues
-- ARGV: 1 name, 2 paused (1 or 0) or '' to keep it, 3 the merge rule as lib/shard.lua describes it,
--   '=' for the default, or '' to keep it, 4 the version of a shard whose state the queue has lost,
--   else 0
-- Returns the record, or nil. It stays if it can't be read, if the rule differs from the queue's in
--   core.Same, or if it is later than the version of that shard.

local QUEUES = KEYS[1]
local name, paused, rule, kept = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local record = redis.call('HGET', QUEUES, name)
if not record then return false end
local index, was, layout, version, old, nonce = string.match(record, '^(%d) (%d) (%d+ %d+) (%d+)([=%d-]*)(.*)$') -- see declare.lua and forget.lua
if not index then return record end
version = tonumber(version)

local function same_push(of) return string.match(of, '^=%-?%d+=1$') ~= nil end
if rule ~= '' and same_push(rule) ~= same_push(old) then return record end

if paused == '' then paused = was end
if rule == '' then rule = old elseif rule == '=' then rule = '' end
if kept > 0 and (version > kept or version == kept and paused == was and rule == old) then return record end

record = index .. ' ' .. paused .. ' ' .. layout .. ' ' .. string.format('%.0f', math.max(version, kept) + 1) .. rule
redis.call('HSET', QUEUES, name, record .. nonce)
return record
