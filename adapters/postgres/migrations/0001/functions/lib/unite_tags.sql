-- Returns the tags of both lists, at most 8 (core.Tags.Union): in order of their bytes, with chr(31)
-- between them. Lists that are equal or empty, as most are, are compared only.
CREATE FUNCTION {schema}.unite_tags(p_tags text, p_others text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_most CONSTANT int := 8; -- core.MaxTags
BEGIN
  IF p_others = '' OR p_others = p_tags THEN
    RETURN p_tags;
  ELSIF p_tags = '' THEN
    RETURN p_others;
  END IF;

  RETURN (
    SELECT string_agg(t.tag, chr(31) ORDER BY t.tag) FROM (
      SELECT DISTINCT u.tag COLLATE "C" AS tag
      FROM unnest(string_to_array(p_tags, chr(31)) || string_to_array(p_others, chr(31))) u (tag)
      ORDER BY tag LIMIT c_most
    ) t);
END {$};
