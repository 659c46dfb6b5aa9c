-- Reports whether a text has a control character, as Go's unicode.IsControl does for a character.
CREATE FUNCTION {schema}.has_control(p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE AS {$}
  SELECT p_text COLLATE "C" ~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']')
{$};
