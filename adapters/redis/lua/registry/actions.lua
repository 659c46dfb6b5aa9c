#!lua flags=no-writes
-- Lists the actions of operators, the newest first.
-- KEYS: actions by id, their times
-- ARGV: 1 the time that they are before, or '' for the newest, 2 how many
-- Returns {id, time, action, ...}; the action is '' if it is lost

local ACTIONS, TIMES = KEYS[1], KEYS[2]
local before, limit = ARGV[1] == '' and '+inf' or '(' .. ARGV[1], ARGV[2]

local found = redis.call('ZRANGE', TIMES, before, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES')
local list = {}
for i = 1, #found, 2 do
  list[#list + 1] = found[i]
  list[#list + 1] = string.format('%.0f', found[i + 1])
  list[#list + 1] = redis.call('HGET', ACTIONS, found[i]) or ''
end
return list
