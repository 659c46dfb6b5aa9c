#!lua flags=no-writes
-- Lists the members of a sorted set that stand behind a place whose score many share.
-- KEYS: the sorted set
-- ARGV: 1 descending (1 or 0), 2 score of the place, 3 its member, 4 members to list
-- Returns members and their scores in turn
-- Uses: call, floor, precedes.

local KEY, descending, score, member, most = KEYS[1], ARGV[1] == '1', ARGV[2], ARGV[3], tonumber(ARGV[4])

-- Members before low come before the place, and members from high on do not. The rest is a search,
-- since scores tie.
local low, high = call('ZCOUNT', KEY, '-inf', '(' .. score), call('ZCOUNT', KEY, '-inf', score)
while low < high do
  local middle = floor((low + high) / 2)
  if precedes(call('ZRANGE', KEY, middle, middle)[1], member) then low = middle + 1 else high = middle end
end

if descending then
  if low == 0 then return {} end
  local size = call('ZCARD', KEY)
  return call('ZRANGE', KEY, size - low, size - low + most - 1, 'REV', 'WITHSCORES')
end

local there = call('ZRANGE', KEY, low, low, 'WITHSCORES')
if there[1] == member and tonumber(there[2]) == tonumber(score) then low = low + 1 end
return call('ZRANGE', KEY, low, low + most - 1, 'WITHSCORES')
