#!lua flags=no-writes
-- Finds an id everywhere.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 id
-- Returns {'ok', queued, claim, cancel, dead, token}: queued and dead as
--   {PerformAt, record} or nil, the claim and its cancel as stored; token is that of
--   the lease that lasts, or 0

local now, id = clock(ARGV[1]), ARGV[2]
local all = math.pow(2, 31)
local function view(e)
  if not e then return false end
  return {string.format('%.0f', e.job.at), packed(e.job, (first(e, all)))}
end
local queued = load({id}, {call('HGET', JOBS, id)})[id]
return {'ok', view(queued), call('HGET', CLAIMS, id), call('HGET', CANCELS, id), view(load_dead({id})[id]), lasting(LEASE, now)}
