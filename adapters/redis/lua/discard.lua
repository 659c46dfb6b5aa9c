#!lua flags=allow-oom
-- Removes what a shard has set aside.
-- KEYS: meta aside
-- ARGV: the keys of what to remove
-- Returns {'ok', how many there were} or {'unknown'}

local META, ASIDE = KEYS[1], KEYS[2]
if redis.call('EXISTS', META) == 0 then return {'unknown'} end
local discarded = 0
for _, key in ipairs(ARGV) do
  if redis.call('HDEL', ASIDE, key) == 1 then
    redis.call('UNLINK', ASIDE .. ':' .. key)
    discarded = discarded + 1
  end
end
return {'ok', discarded}
