-- Uses: sub, byte.
-- Defines: cut_text.

-- cut_text returns the beginning of a text, cut between characters, as core.CutText does. most
-- bounds its bytes: 0 means the whole text, and below 0 means no text.
local function cut_text(text, most)
  if most < 0 then return '' end
  if most == 0 or #text <= most then return text end
  while most > 0 and byte(text, most + 1) >= 0x80 and byte(text, most + 1) < 0xC0 do most = most - 1 end
  return sub(text, 1, most)
end
