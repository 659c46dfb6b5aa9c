-- Uses: sub, byte.
-- Defines: cut_text.

-- cut_text returns the beginning of a text that has at most so many bytes, cut between
-- characters, as core.CutText does: 0 is the whole text, below 0 none of it.
local function cut_text(text, most)
  if most < 0 then return '' end
  if most == 0 or #text <= most then return text end
  while most > 0 and byte(text, most + 1) >= 0x80 and byte(text, most + 1) < 0xC0 do most = most - 1 end
  return sub(text, 1, most)
end
