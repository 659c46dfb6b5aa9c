-- Returns an error with the tags of another one added to its own. The column error has the tags of
--   a job before the text: chr(30), the tags with chr(31) between them, chr(30), the text. Without
--   tags it has the text alone, which may have one chr(30) at its beginning (storekit.CutTags).
--   Equal tags, as those of all payloads of a dead letter, are compared only.
CREATE FUNCTION {schema}.unite_tags(p_error text, p_other text) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE
    WHEN NOT starts_with(p_other, chr(30)) THEN p_error
    WHEN p_error LIKE E'\x1e%\x1e%' AND split_part(p_error, chr(30), 2) = split_part(p_other, chr(30), 2) THEN p_error
    ELSE {schema}.add_tags(p_error, ARRAY[p_other])
  END
{$};
