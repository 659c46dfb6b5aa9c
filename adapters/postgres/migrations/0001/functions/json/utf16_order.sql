-- Returns a text whose order by bytes is that of the given text by UTF-16: the characters from U+E000
-- to U+FFFF come behind all others.
CREATE FUNCTION {schema}.utf16_order(p_text text) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT regexp_replace(
    replace(p_text, chr(1114111), chr(1114111) || chr(1)),
    ('[' || chr(57344) || '-' || chr(65535) || ']') COLLATE "C",
    repeat(chr(1114111), 2) || E'\\&', 'g')
{$};
