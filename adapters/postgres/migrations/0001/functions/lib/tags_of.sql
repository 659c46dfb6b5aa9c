-- Returns tags that SQL pushes as they are stored (core.NewTags): in order of their bytes, each once,
-- with chr(31) between them. It fails for tags that core.NewTags refuses.
CREATE FUNCTION {schema}.tags_of(p_tags text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_tag_bytes CONSTANT int := 64;  -- core.MaxTagBytes
  c_tags      CONSTANT int := 8;   -- core.MaxTags
  v_tag  text;
  v_tags text[];
BEGIN
  IF p_tags IS NULL THEN
    RETURN '';
  END IF;

  FOREACH v_tag IN ARRAY p_tags LOOP
    IF coalesce(v_tag, '') = '' THEN
      RAISE EXCEPTION 'a tag is empty' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a text.';
    ELSIF octet_length(v_tag) > c_tag_bytes THEN
      RAISE EXCEPTION 'a tag has % bytes, at most % are allowed', octet_length(v_tag), c_tag_bytes
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Shorten it.';
    ELSIF {schema}.has_control(v_tag) THEN
      RAISE EXCEPTION 'a tag has a control character'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Encode the tag.';
    END IF;
  END LOOP;

  v_tags := ARRAY(SELECT DISTINCT t.tag COLLATE "C" AS tag FROM unnest(p_tags) t (tag) ORDER BY tag);
  IF cardinality(v_tags) > c_tags THEN
    RAISE EXCEPTION 'there are % tags, at most % are allowed', cardinality(v_tags), c_tags
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave some out.';
  END IF;
  RETURN array_to_string(v_tags, chr(31));
END {$};
