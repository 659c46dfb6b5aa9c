-- Returns tags as they are stored (core.NewTags): in order of their bytes, each once, with chr(31)
-- between them.
CREATE FUNCTION {schema}.tags_of(p_tags text[]) RETURNS text LANGUAGE sql IMMUTABLE AS {$}
  SELECT coalesce(string_agg(t.tag, chr(31) ORDER BY t.tag), '')
  FROM (SELECT DISTINCT u.tag COLLATE "C" AS tag FROM unnest(p_tags) u (tag)) t
{$};
