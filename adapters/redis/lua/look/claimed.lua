#!lua flags=no-writes
-- Lists some of a shard's claims, in order of id.
-- KEYS: meta claims cancels lease
-- ARGV: 1 now or '', 2 the id after which they begin, or '', 3 payloads of each, 4 bytes of each
--   error, as packed.short_failures has them
-- Returns {more (1 or 0), claims, cancels, token, expires}: claims as id, how many payloads it has,
--   the claim with the first of them; cancels as id, value; token and expires are those of
--   the current lease, or 0
-- Uses: CLAIMS, CANCELS, LEASE, call, sub, parse, clock, bounds, packed, claim_from, claims_after,
--   current_token.

local now, after, most_payloads, most_error = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local MOST_CLAIMS, MOST_READ = 250, 524288
local list, bound, read, more = {}, bounds.new(), 0, 0

-- shortened returns a claim with its first payloads, how many it has, how many are left, and their
-- bytes.
local function shortened(value)
  local from = claim_from(value) + 8
  local count = packed.weigh(value, from)
  local job, some, size = packed.decode(value, (parse('>I8', value, from - 8)), most_payloads, from), {}, 0
  for i = 1, math.min(most_payloads, #job.list) do
    some[i] = job.list[i]
    size = size + #some[i].data
  end

  job.failures = packed.short_failures(job.failures, most_error)
  return packed.encode(job, some, sub(value, 1, from - 1)), count, #some, size
end

for _, id in ipairs(claims_after(after)) do
  local value = #list < 3 * MOST_CLAIMS and read < MOST_READ and call('HGET', CLAIMS, id)
  if not value then more = 1 break end
  read = read + #value
  local ok, claim, count, n, size = pcall(shortened, value)
  if not ok then n, size = 0, 0 end -- it can't be read

  if not bounds.fits(bound, n, size) then more = 1 break end
  bounds.count(bound, n, size)
  if ok then list[#list + 1], list[#list + 2], list[#list + 3] = id, count, claim end
end

return {more, list, call('HGETALL', CANCELS), current_token(LEASE, now)}
