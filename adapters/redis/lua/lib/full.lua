-- Defines: is_full.

-- is_full reports whether the server is beyond its maxmemory. Turns run there all the same and may
-- add little. It asks once.
local is_full
do
  local full

  is_full = function()
    if full == nil then
      local info = redis.call('INFO', 'memory')
      local most = tonumber(string.match(info, '[\r\n]maxmemory:(%d+)') or 0)
      full = most > 0 and tonumber(string.match(info, '[\r\n]used_memory:(%d+)') or 0) > most
    end
    return full
  end
end
