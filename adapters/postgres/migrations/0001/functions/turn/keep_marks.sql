-- Raises the marks of ids to scores. An id may be there several times, and a score may be NULL for no
-- mark. Returns the change of the number of the shard's records.
CREATE FUNCTION {schema}.keep_marks(p_shard int, p_now bigint, p_ids text[], p_scores float8[], OUT records int)
LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  -- The former marks are locked, so that no turn removes one that is counted here as replaced.
  WITH raised AS MATERIALIZED (
    SELECT DISTINCT m.id FROM unnest(p_ids, p_scores) m (id, score) WHERE m.score IS NOT NULL
  ), former AS MATERIALIZED (
    SELECT f.id FROM raised r, LATERAL (
      SELECT p.id FROM {schema}.past p WHERE p.shard = p_shard AND p.id = r.id AND p.mark FOR UPDATE
    ) f
  )
  SELECT (SELECT count(*) FROM raised) - (SELECT count(*) FROM former) INTO records;

  INSERT INTO {schema}.past AS p (shard, id, mark, raises, done_at, started, took, score, payloads, attempt, node)
  SELECT p_shard, m.id, true, true, p_now, 0, 0, max(m.score), 0, 0, ''
  FROM unnest(p_ids, p_scores) m (id, score) WHERE m.score IS NOT NULL
  GROUP BY m.id ORDER BY m.id
  ON CONFLICT (shard, id, mark) DO UPDATE SET done_at = excluded.done_at, score = greatest(p.score, excluded.score);
END {$};
