-- Does what unite_tags does with any number of other errors. Of all tags, the first 8 stay in order
-- of their bytes.
CREATE FUNCTION {schema}.add_tags(p_error text, p_others text[]) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN u.tags = '' THEN p_error ELSE chr(30) || u.tags || chr(30) || {schema}.error_text(p_error) END
  FROM (
    SELECT coalesce(string_agg(t.tag, chr(31) ORDER BY t.tag), '') FROM (
      SELECT DISTINCT s.tag COLLATE "C" AS tag FROM unnest(p_others || p_error) e (error),
        LATERAL unnest(string_to_array(split_part(e.error, chr(30), 2), chr(31))) s (tag)
      WHERE e.error LIKE E'\x1e%\x1e%' AND s.tag <> ''
      ORDER BY tag LIMIT 8 /* core.MaxTags */
    ) t
  ) u (tags)
{$};
