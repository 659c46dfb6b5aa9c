#!lua flags=no-writes
-- Reads what is not settled yet of ids of a shard.
-- KEYS: all of the jobs of the shard
-- ARGV: 1 now or '', 2... ids
-- Returns {'ok', now, bits, first, ...}: of each id its bits, 1 if it is queued, 2 if it is claimed,
--   4 if the queued job is held, 8 if it has a dead letter and 16 if a record of it can't be read,
--   and the smaller FirstPush of both jobs, or 0; it reads fewer ids if their jobs are large
-- Uses: JOBS, READY, PARKED, CLAIMS, DEAD, DTIME, PAYLOADS, META, call, parse, fetch, clock, packed,
--   queue, claim_from, claim_weight, fault_of.

local now, ids, MOST_READ = clock(ARGV[1]), {unpack(ARGV, 2)}, 4194304
local ready, parked, died = fetch('ZMSCORE', READY, ids), fetch('ZMSCORE', PARKED, ids), fetch('ZMSCORE', DTIME, ids)
local read = 0

-- queued_job returns the queued job of the i-th id, or nil, and whether its record can't be read.
local function queued_job(i)
  local id, at = ids[i], tonumber(ready[i] or parked[i])
  local value = call('HGET', JOBS, id)
  if not value then return nil, at or call('EXISTS', PAYLOADS .. id, META) == 2 end
  read = read + #value

  local ok, job = pcall(packed.decode, value, at, 0)
  if not ok or not at or job.many and fault_of('q', id) then return nil, true end
  return job
end

-- claimed_job is queued_job of the claim.
local function claimed_job(id)
  local value = call('HGET', CLAIMS, id)
  if not value then return end
  read = read + #value
  if not pcall(claim_weight, value) then return nil, true end
  local from = claim_from(value) + 8
  return packed.decode(value, (parse('>I8', value, from - 8)), 0, from)
end

local reply = {'ok', now}
for i, id in ipairs(ids) do
  local job, job_damaged = queued_job(i)
  local claim, claim_damaged = claimed_job(id)

  local bits = (job and 1 or 0) + (claim and 2 or 0) + (job and queue.is_held(job) and 4 or 0) +
    ((died[i] or call('HEXISTS', DEAD, id) == 1) and 8 or 0) + ((job_damaged or claim_damaged) and 16 or 0)
  local first = math.min(job and job.first or math.huge, claim and claim.first or math.huge)
  if first == math.huge then first = 0 end
  reply[#reply + 1], reply[#reply + 2] = bits, string.format('%.0f', first)

  if read >= MOST_READ then break end
end
return reply
