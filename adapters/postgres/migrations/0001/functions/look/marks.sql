-- Returns the marks of ids (core.Mark), in their places from 1, of those that have one.
CREATE FUNCTION {schema}.marks(p_shard int, p_ids text[]) RETURNS TABLE (place int, score float8) LANGUAGE sql STABLE AS {$}
  SELECT u.place::int, m.score
  FROM unnest(p_ids) WITH ORDINALITY u (id, place), LATERAL (
    SELECT max(p.score) AS score FROM {schema}.past p WHERE p.shard = p_shard AND p.id = u.id COLLATE "C" AND p.raises
  ) m
  WHERE m.score IS NOT NULL
{$};
