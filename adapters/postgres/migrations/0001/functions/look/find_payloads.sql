-- Returns payloads of an id by place: kind is j for the queued job, c for the claim and d for the
-- dead letter. In each place it leaves out those with a score below p_score and the first p_skip
-- of that score. p_most has the most payloads of each place. Over all places it returns at most
-- p_payloads, and as many as fit into p_bytes, but the very first in any case. more is whether the
-- place has others behind them. A place that has 0 in p_most, or no payloads to return, has no
-- row.
CREATE FUNCTION {schema}.find_payloads(p_shard int, p_id text, p_score double precision, p_skip int, p_most int[], p_payloads int, p_bytes bigint)
RETURNS TABLE (kind "char", scores double precision[], data bytea[], meta bytea[], more boolean) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = on SET jit = off AS {$}
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT f.kind, array_agg(f.score ORDER BY f.nth) FILTER (WHERE f.fits), array_agg(f.data ORDER BY f.nth) FILTER (WHERE f.fits),
    array_agg(f.meta ORDER BY f.nth) FILTER (WHERE f.fits), NOT bool_and(f.fits)
  FROM (
    SELECT o.*, NOT o.beyond AND (o.nth <= p_payloads AND o.size <= p_bytes OR o.nth = 1) AS fits FROM (
      SELECT r.*, sum(octet_length(r.data)) FILTER (WHERE NOT r.beyond) OVER w AS size, count(*) FILTER (WHERE NOT r.beyond) OVER w AS nth
      FROM (
        SELECT s.*, count(*) OVER (PARTITION BY s.kind ORDER BY s.place ROWS UNBOUNDED PRECEDING) > p_most[s.rank] AS beyond FROM (
          SELECT 1 AS rank, 'j'::"char" AS kind, j.score, j.data, j.meta, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS place FROM (
            SELECT p.score, p.data, p.meta FROM (
              SELECT j.score, substr(j.data, 1, 256) AS beginning, j.data, j.meta FROM {schema}.jobs j
              WHERE p_most[1] > 0 AND j.shard = p_shard AND j.id = p_id AND j.data IS NOT NULL AND j.score >= p_score
              UNION ALL
              SELECT * FROM (
                SELECT x.score, substr(x.data, 1, 256) AS beginning, x.data, x.meta FROM {schema}.payloads x
                WHERE p_most[1] > 0 AND x.shard = p_shard AND x.id = p_id
                  AND x.score >= (SELECT greatest(p_score, j.low) FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id)
                ORDER BY x.score, beginning, x.data LIMIT p_skip + p_most[1] + 1
              ) x
            ) p ORDER BY p.score, p.beginning, p.data LIMIT p_skip + p_most[1] + 1
          ) j
          UNION ALL
          SELECT 2, 'c', c.score, c.data, c.meta, row_number() OVER (ROWS UNBOUNDED PRECEDING) FROM (
            SELECT u.score, u.data, u.meta FROM {schema}.claimed c
            CROSS JOIN LATERAL unnest(ARRAY[c.score] || c.more_scores, ARRAY[c.data] || c.more_data, ARRAY[c.meta] || c.more_meta) WITH ORDINALITY u (score, data, meta, place)
            WHERE p_most[2] > 0 AND c.shard = p_shard AND c.id = p_id AND u.score >= p_score
            ORDER BY u.place LIMIT p_skip + p_most[2] + 1
          ) c
          UNION ALL
          SELECT 3, 'd', d.score, d.data, d.meta, row_number() OVER (ROWS UNBOUNDED PRECEDING) FROM (
            SELECT x.score, x.data, x.meta FROM {schema}.dead_letter_payloads x
            WHERE p_most[3] > 0 AND x.shard = p_shard AND x.id = p_id AND x.score >= p_score
            ORDER BY x.score, substr(x.data, 1, 256), x.data LIMIT p_skip + p_most[3] + 1
          ) d
        ) s WHERE s.score > p_score OR s.place > p_skip
      ) r WINDOW w AS (ORDER BY r.rank, r.place ROWS UNBOUNDED PRECEDING)
    ) o
  ) f GROUP BY f.kind;
END {$};
