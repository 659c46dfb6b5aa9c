-- Uses: ASIDE, call, pack, plan.
-- Defines: put_aside.

-- put_aside plans to set aside a record, '' if it is lost or stays, of an id in a place. ASIDE has
-- it under a key that is the time in 16 digits, the place and the name, which is the id unless it
-- is another. The value is the time, the lengths of id and reason, place, id, reason, and the
-- record unchanged. It returns the key.
local function put_aside(now, place, id, why, record, name)
  local at, key = now, nil
  repeat
    key = string.format('%016.0f', at) .. place .. (name or id)
    at = at + 1
  until call('HEXISTS', ASIDE, key) == 0
  plan.hset(ASIDE, key, pack('>I8I2I2', now, #id, #why) .. place .. id .. why .. record)
  return key
end
