#!lua flags=allow-oom
-- Removes records that a shard has set aside.
-- KEYS: meta aside
-- ARGV: the keys of the records to remove
-- Returns {'ok', how many were removed} or {'unknown'}

local META, ASIDE = KEYS[1], KEYS[2]
if redis.call('EXISTS', META) == 0 then return {'unknown'} end

local there, sets, seen = {}, {}, {}
for _, key in ipairs(ARGV) do
  local set = ASIDE .. ':' .. key
  if not seen[key] and redis.call('HEXISTS', ASIDE, key) == 1 then
    seen[key], there[#there + 1] = true, key
    if redis.call('EXISTS', set, META) == 2 then sets[#sets + 1] = set end -- fails if another server has one of them
  end
end

for _, key in ipairs(there) do redis.call('HDEL', ASIDE, key) end
for _, set in ipairs(sets) do redis.call('UNLINK', set) end
return {'ok', #there}
