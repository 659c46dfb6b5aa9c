-- Returns an error with the tags of another one added to its own. The column error has the tags of
--   a job before the text: chr(30), the tags with chr(31) between them, chr(30), the text. Without
--   tags it has the text alone.
CREATE FUNCTION {schema}.unite_tags(p_error text, p_other text) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN starts_with(p_other, chr(30)) THEN {schema}.add_tags(p_error, ARRAY[p_other]) ELSE p_error END
{$};
