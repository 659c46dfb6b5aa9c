-- How much a script may hand over or move, as in core.Bound.
-- Defines: bounds.

local bounds
do
  local MOST_PAYLOADS, MOST_BYTES = 1000, 8388608

  -- new returns the bound of a script that has taken nothing. most is the number of bytes, nil for
  -- the usual one. strict is true if the first payloads must fit too.
  local function new(most, strict)
    return {payloads = 0, bytes = 0, most = math.min(most or MOST_BYTES, MOST_BYTES), strict = strict}
  end

  -- fits reports whether n payloads of size bytes together may be taken as well. The first payloads
  -- always may, unless the bound is strict.
  local function fits(bound, n, size)
    return bound.payloads == 0 and not bound.strict
      or bound.payloads + n <= MOST_PAYLOADS and bound.bytes + size <= bound.most
  end

  -- count counts payloads that are taken.
  local function count(bound, n, size)
    bound.payloads, bound.bytes = bound.payloads + n, bound.bytes + size
  end

  -- left returns how many payloads, and how many bytes, may still be taken.
  local function left(bound)
    if bound.payloads == 0 then return MOST_PAYLOADS, MOST_BYTES end
    return math.max(0, MOST_PAYLOADS - bound.payloads), math.max(0, MOST_BYTES - bound.bytes)
  end

  bounds = {new = new, fits = fits, count = count, left = left, most_bytes = MOST_BYTES}
end
