-- Settles claimed jobs: deletes their rows and returns what becomes of them. The arrays have one
-- element per settlement. p_processed and p_failed say what counts; NULL is processed, not failed.
-- The arrays from p_rest on are NULL if all jobs are done whole. Else p_rest is a disposition, with
-- how the job is put back or buried, and p_except lists the payloads with another one: of the
-- settlement at a place from 1 the payload at a position from 0. Returns done, the places that were
-- carried out: those claimed with this receipt by a row that nobody else has locked.
CREATE FUNCTION {schema}.settle_claimed(p_shard int, p_now bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_processed boolean[], p_failed boolean[],
  p_rest smallint[], p_same_times boolean[], p_delays bigint[], p_retry_counts int[], p_recoveries int[], p_errors text[], p_bury_errors text[],
  p_except_places int[], p_except_positions int[], p_except_dispositions smallint[],
  OUT done int[], OUT processed int, OUT failed int, OUT put_back {schema}.arrival[], OUT buried {schema}.arrival[])
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_requeue CONSTANT smallint := 1; -- core.Requeue
  c_bury    CONSTANT smallint := 2; -- core.Bury
BEGIN
  IF p_rest IS NULL THEN
    WITH found AS MATERIALIZED (
      SELECT c.at, s.place, coalesce(s.processed, true) AS processed, coalesce(s.failed, false) AS failed
      FROM unnest(p_ids, p_tokens, p_numbers, p_processed, p_failed)
        WITH ORDINALITY s (id, token, number, processed, failed, place), LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE SKIP LOCKED
      ) c
    ), gone AS (
      DELETE FROM {schema}.claimed c USING found f WHERE c.ctid = f.at RETURNING f.place, f.processed, f.failed
    )
    SELECT array_agg(g.place), count(*) FILTER (WHERE g.processed), count(*) FILTER (WHERE g.failed)
    INTO done, processed, failed FROM gone g;
    RETURN;
  END IF;
  WITH found AS MATERIALIZED (
    SELECT c.at, s.*
    FROM unnest(p_ids, p_tokens, p_numbers, p_processed, p_failed, p_rest, p_same_times, p_delays, p_retry_counts, p_recoveries,
        p_errors, p_bury_errors)
      WITH ORDINALITY s (id, token, number, processed, failed, rest, same_time, delay, retry_count, recoveries,
        error, bury_error, place), LATERAL (
      SELECT c.ctid AS at FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE SKIP LOCKED
    ) c
  ), gone AS (
    DELETE FROM {schema}.claimed c USING found f WHERE c.ctid = f.at
    RETURNING f.id, f.place, coalesce(f.processed, true) AS processed, coalesce(f.failed, false) AS failed,
      f.rest, f.same_time, f.delay, f.retry_count, f.recoveries, f.error, f.bury_error,
      c.perform_at, c.first_push, c.score, c.data, c.meta, c.more_scores, c.more_data, c.more_meta
  ), payloads AS (
    SELECT g.*, 0 AS position, g.score AS p_score, g.data AS p_data, g.meta AS p_meta FROM gone g
    UNION ALL
    SELECT g.*, m.position, m.score, m.data, m.meta
    FROM gone g, unnest(g.more_scores, g.more_data, g.more_meta) WITH ORDINALITY m (score, data, meta, position)
  ), decided AS (
    SELECT p.*, coalesce(CASE WHEN p_except_places IS NOT NULL THEN (
      SELECT x.disposition FROM unnest(p_except_places, p_except_positions, p_except_dispositions) x (place, position, disposition)
      WHERE x.place = p.place AND x.position = p.position
    ) END, p.rest) AS disposition FROM payloads p
  )
  -- The fields of an arrival, in order: kind, rule, rule_limit, perform_at, first_push, score,
  -- retry_count, recoveries, id, error, data, meta.
  SELECT (SELECT array_agg(g.place) FROM gone g),
    (SELECT count(*) FROM gone g WHERE g.processed), (SELECT count(*) FROM gone g WHERE g.failed),
    array_agg(ROW('put_back', 0, 0, CASE WHEN d.same_time THEN d.perform_at ELSE {schema}.later(p_now, d.delay) END, d.first_push,
      d.p_score, d.retry_count, d.recoveries, d.id, d.error, d.p_data, d.p_meta)::{schema}.arrival
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = c_requeue),
    array_agg(ROW('buried', 0, 0, p_now, 0, d.p_score, 0, 0, d.id, d.bury_error, d.p_data, d.p_meta)::{schema}.arrival
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = c_bury)
  INTO done, processed, failed, put_back, buried FROM decided d;
END {$};
