#!lua flags=no-writes
-- Finds an id everywhere, or the next payloads of what it found before.
-- KEYS: all of the shard
-- ARGV: 1 now or '', 2 id; then, for the next payloads, 3 whether those of the dead letter
--   or of the queued job (1 or 0), 4 score and 5 data of the last one
-- Returns {'ok', queued, claim, cancel, dead, token}: queued and dead as
--   {PerformAt, packed job, whether it has more payloads (1 or 0)} or nil, the claim and its
--   cancel as stored; token is that of the current lease, or 0. For the next payloads
--   {'ok', queued or dead}
-- Uses: JOBS, CLAIMS, DEAD, LEASE, CANCELS, call, clock, bounds, packed, items, queue,
--   morgue, current_token.

local now, id, dead, score, data = clock(ARGV[1]), ARGV[2], ARGV[3] == '1', ARGV[4], ARGV[5]
local function view(item, payloads, more)
  return {string.format('%.0f', item.job.at), packed.encode_with(item.job, payloads), more and 1 or 0}
end
local function queued_job() return queue.load({id}, {call('HGET', JOBS, id)})[id] end
local function dead_letter() return morgue.load({id}, {call('HGET', DEAD, id)})[id] end
if score then
  local item
  if dead then item = dead_letter() else item = queued_job() end
  return {'ok', item and view(item, items.after(item, score, data)) or false}
end

local function found(item)
  if not item then return false end
  local n, size = bounds.left(bounds.new())
  local payloads, total = items.first(item, n, size)
  return view(item, payloads, #payloads < total)
end
return {'ok', found(queued_job()), call('HGET', CLAIMS, id), call('HGET', CANCELS, id), found(dead_letter()),
  current_token(LEASE, now)}
