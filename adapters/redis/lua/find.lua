#!lua flags=no-writes
-- Finds an id everywhere.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 id
-- Returns {'ok', queued, claim, cancel, dead, token}: queued and dead as
--   {PerformAt, packed job} or nil, the claim and its cancel as stored; token is that of
--   the current lease, or 0
-- Uses: JOBS, CLAIMS, LEASE, CANCELS, call, clock, packed, items, queue, morgue,
--   current_token.

local now, id = clock(ARGV[1]), ARGV[2]
local function view(item)
  if not item then return false end
  return {string.format('%.0f', item.job.at), packed.encode_with(item.job, items.all(item))}
end
local job, dead = queue.load({id}, {call('HGET', JOBS, id)})[id], morgue.load({id})[id]
return {'ok', view(job), call('HGET', CLAIMS, id), call('HGET', CANCELS, id), view(dead), current_token(LEASE, now)}
