-- Returns an error without the tags before it: see unite_tags.
CREATE FUNCTION {schema}.error_text(p_error text) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN p_error LIKE E'\x1e%\x1e%' THEN substr(p_error, length(split_part(p_error, chr(30), 2)) + 3) ELSE p_error END
{$};
