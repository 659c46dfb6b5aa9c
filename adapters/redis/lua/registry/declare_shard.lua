#!lua flags=allow-oom
-- Stores the record of a shard unless it has one that is as new: the second half of Declare.
-- KEYS: meta
-- ARGV: 1 the queue's record, 2 whether all its shards were declared before (1 or 0)
-- Returns {'ok'}, {'new'} if the shard had none, {'torn'} if it has lost its record, or {'layout',
--   layout} if it has that of another layout, which stays. A record that can't be read counts as
--   absent.

local META = KEYS[1]
local record, whole = ARGV[1], ARGV[2] == '1'
local function parts(text) return string.match(text, '^%d %d (%d+ %d+) (%d+)') end

local old = redis.call('GET', META)
local layout, version = parts(record)
local there, before
if old then there, before = parts(old) end

if not there and whole then return {'torn'} end
if there and there ~= layout then return {'layout', there} end

if not there or tonumber(before) < tonumber(version) then redis.call('SET', META, record) end
return {there and 'ok' or 'new'}
