local head = -1
if order[k] and not paused and alone == 0 and not (isolated(k) and not free()) then head = times[k] end
local open = #cancels > 0 and {} or cancels
for i = 1, #cancels, 2 do
  if gone[cancels[i]] then hdel(CANCELS, cancels[i])
  else open[#open + 1] = cancels[i]; open[#open + 1] = cancels[i + 1] end
end
if #ids == 0 and stats == '' and taken == 0 and not resent and ARGV[text + 2] == nil then
  local remaining = math.max(0, math.min(tonumber(lease[6]), now + tonumber(lease[5])) - now)
  return {'ok', last, now, remaining, paused and 1 or 0, head, skipped, claims, open, unbegun}
end

for _, id in ipairs(freed) do if not chosen[id] then hdel(CLAIMS, id) end end
for _, id in ipairs(plain) do hdel(JOBS, id) end
for _, v in ipairs(begun) do came[#came + 1] = v end
if #came > 0 then hsets[CLAIMS] = came end
for id, time in pairs(waiting) do
  if not moved[id] then zadd(READY, time, id); zrem(PARKED, id) end
end
for id, e in pairs(moved) do if not chosen[id] then enqueue(e, READY, index) end end
for _, e in ipairs(deads) do keep_dead(e) end

-- count adds the statistics, "slot=n slot=n", to the minute.
local function count()
  local DAY, MINUTE, sums, texts = 86400000000, 60000000, {}, {}
  local minute = string.format('%.0f', now - now % MINUTE)
  local there = call('HGET', HISTORY, minute)
  for slot, n in string.gmatch((there or '') .. ' ' .. stats, '(%d+)=(%d+)') do sums[slot] = (sums[slot] or 0) + n end
  for slot, n in pairs(sums) do texts[#texts + 1] = slot .. '=' .. string.format('%.0f', n) end
  if #texts > 0 then hset(HISTORY, minute, table.concat(texts, ' ')) end
  for _, old in ipairs(there and {} or call('HKEYS', HISTORY)) do
    if tonumber(old) < minute - DAY then hdel(HISTORY, old) end
  end
end
if stats ~= '' then count() end
hsets[LEASE] = {'last', number, 'ttl', ttl, 'expires', expires, 'alone', alone,
  'processed', tonumber(lease[8] or 0) + processed, 'failed', tonumber(lease[9] or 0) + failed}
write()
return {'ok', number, now, expires - now, paused and 1 or 0, head, skipped, claims, open, unbegun}
