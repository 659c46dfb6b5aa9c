#!lua
-- Makes the record of a shard unless it is there: the second half of Declare.
-- KEYS: meta
-- ARGV: 1 shards, 2 generation, 3 index, 4 paused, 5 version of the pause
-- Returns {'ok'}

local shards, generation, index, paused, version = unpack(ARGV)
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'shards', shards, 'generation', generation, 'index', index,
    'paused', paused, 'version', version)
end
return {'ok'}
