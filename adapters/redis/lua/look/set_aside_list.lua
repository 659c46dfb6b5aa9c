#!lua flags=no-writes
-- Lists some of the records that a shard has set aside, in order of key.
-- KEYS: meta aside
-- ARGV: 1 the key after which they begin, or '', 2 how many at most, 3 bytes of each record
-- Returns {'ok', more (1 or 0), key, size of the record, its value with that many bytes of the
--   record, ...} or {'unknown'}
-- Uses: call, sub, parse, precedes.

local META, ASIDE = KEYS[1], KEYS[2]
local after, most, shown = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if call('EXISTS', META) == 0 then return {'unknown'} end

local keys = {}
for _, key in ipairs(call('HKEYS', ASIDE)) do if after == '' or precedes(after, key) then keys[#keys + 1] = key end end
table.sort(keys, precedes)

local MOST_READ = 4194304
local reply, read = {'ok', 0}, 0
for i, key in ipairs(keys) do
  if i > most or read > MOST_READ then reply[2] = 1 break end

  local value = call('HGET', ASIDE, key)
  local _, n, m, from = parse('>I8I2I2', value)
  from, read = from + 1 + n + m, read + #value
  for _, v in ipairs({key, #value - from + 1, sub(value, 1, from - 1 + shown)}) do reply[#reply + 1] = v end
end
return reply
