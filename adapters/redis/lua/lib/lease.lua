-- Defines: current_token.

-- current_token returns the token of the lease that keeps others out now and when it ends, or 0
-- and 0.
local function current_token(key, now)
  local l = redis.call('HMGET', key, 'token', 'held', 'expires')
  if l[2] ~= '1' or tonumber(l[3]) <= now then return 0, 0 end
  return tonumber(l[1]), tonumber(l[3])
end
