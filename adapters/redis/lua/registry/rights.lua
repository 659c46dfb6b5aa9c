#!lua flags=no-writes
-- Reports which commands of the scripts the user may not run.
-- KEYS: none, so that any server of a Cluster answers
-- ARGV: 1 the key of the list of queues
-- Returns the names of these commands

local QUEUES = ARGV[1]
local commands = {'EXISTS', 'GET', 'HDEL', 'HEXISTS', 'HGET', 'HGETALL', 'HINCRBY', 'HKEYS', 'HLEN', 'HMGET', 'HSCAN', 'HSET',
  'HSETNX', 'HSTRLEN', 'INFO', 'PEXPIRE', 'RENAME', 'SET', 'TIME', 'UNLINK', 'ZADD', 'ZCARD', 'ZCOUNT', 'ZLEXCOUNT', 'ZMSCORE', 'ZRANGE', 'ZRANGEBYSCORE',
  'ZRANK', 'ZREM', 'ZREMRANGEBYRANK', 'ZSCAN', 'ZSCORE'}
local missing = {}
for _, command in ipairs(commands) do
  if not redis.acl_check_cmd(command, QUEUES) then missing[#missing + 1] = command end
end
return missing
