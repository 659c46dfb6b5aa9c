-- Returns a JSON value in the form in which equal values have equal bytes (docs/rules.md 13), as
-- internal/canonical does. A jsonb has each member of an object once, and only Unicode.
CREATE FUNCTION {schema}.canonical_json(p_value jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS {$}
BEGIN
  CASE jsonb_typeof(p_value)
    WHEN 'object' THEN
      RETURN (
        SELECT '{' || coalesce(string_agg(to_json(m.name)::text || ':' || {schema}.canonical_json(m.value), ','
          ORDER BY {schema}.utf16_order(m.name) COLLATE "C"), '') || '}'
        FROM jsonb_each(p_value) m (name, value));
    WHEN 'array' THEN
      RETURN (
        SELECT '[' || coalesce(string_agg({schema}.canonical_json(e.value), ',' ORDER BY e.place), '') || ']'
        FROM jsonb_array_elements(p_value) WITH ORDINALITY e (value, place));
    WHEN 'number' THEN
      RETURN {schema}.canonical_number(p_value::numeric);
    ELSE
      RETURN p_value::text;
  END CASE;
END {$};
