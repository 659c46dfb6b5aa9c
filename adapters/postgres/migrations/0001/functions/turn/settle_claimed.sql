-- Settles claimed jobs: deletes their rows and returns what becomes of them. The arrays have one
-- element per settlement. p_processed and p_failed are what counts; NULL means processed, not
-- failed. The arrays from p_dispositions on are NULL if all jobs are done whole. Otherwise
-- p_dispositions has a byte for each payload in order, a core.Disposition; the last byte stands for
-- the payloads after it as well. The other arrays are how the job is put back or buried; a time is
-- 0 for the delay, c_same or c_awaits. p_groups may be NULL if no job is buried. It puts back or
-- buries at most as many payloads and bytes as one step may move, but always carries out the first
-- such settlement. Settlements behind it that don't fit are not carried out. Returns done, the
-- places that were carried out: those claimed with this receipt by a row that no other session has
-- locked.
CREATE FUNCTION {schema}.settle_claimed(p_shard int, p_now bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_processed boolean[], p_failed boolean[],
  p_dispositions bytea[], p_times smallint[], p_delays bigint[], p_retry_counts int[], p_recoveries int[], p_errors text[], p_bury_errors text[], p_groups text[],
  OUT done int[], OUT processed int, OUT failed int, OUT put_back {schema}.arrival[], OUT buried {schema}.arrival[])
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_done    CONSTANT bytea := decode('00', 'hex'); -- core.Done; what '\' means is a setting
  c_requeue CONSTANT smallint := 1; -- core.Requeue
  c_bury    CONSTANT smallint := 2; -- core.Bury
  c_same     CONSTANT smallint := 1; -- core.PutBack.SameTime
  c_awaits   CONSTANT smallint := 2; -- core.PutBack.Awaits
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest: the earlier of both times if it was pushed since
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_bytes    CONSTANT bigint := 8388608; -- core.MaxStepBytes
BEGIN
  IF p_dispositions IS NULL THEN
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
    SELECT c.*, s.*, btrim(s.dispositions, c_done) <> '' AS moves
    FROM unnest(p_ids, p_tokens, p_numbers, p_processed, p_failed, p_dispositions, p_times, p_delays, p_retry_counts, p_recoveries,
        p_errors, p_bury_errors, p_groups)
      WITH ORDINALITY s (id, token, number, processed, failed, dispositions, time_rule, delay, retry_count, recoveries,
        error, bury_error, grp, place), LATERAL (
      SELECT c.ctid AS at, m.payloads, m.size
      FROM {schema}.claimed c, LATERAL (
        SELECT 1 + coalesce(cardinality(c.more_scores), 0) AS payloads, coalesce(c.size, octet_length(c.data)) AS size
        WHERE position(c_done IN s.dispositions) = 0
        UNION ALL
        SELECT count(*), coalesce(sum(octet_length(d.data)), 0)
        FROM unnest(ARRAY[c.data] || c.more_data) WITH ORDINALITY d (data, position)
        WHERE get_byte(s.dispositions, least(d.position, octet_length(s.dispositions))::int - 1) <> 0
        HAVING position(c_done IN s.dispositions) > 0
      ) m
      WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE OF c SKIP LOCKED
    ) c
  ), summed AS (
    SELECT f.*, sum(f.payloads) FILTER (WHERE f.moves) OVER w AS sum, sum(f.size) FILTER (WHERE f.moves) OVER w AS bytes
    FROM found f WINDOW w AS (ORDER BY f.place)
  ), gone AS (
    DELETE FROM {schema}.claimed c USING summed f
    WHERE c.ctid = f.at AND (NOT f.moves OR f.sum = f.payloads OR f.sum <= c_payloads AND f.bytes <= c_bytes)
    RETURNING f.id, f.place, coalesce(f.processed, true) AS processed, coalesce(f.failed, false) AS failed,
      f.dispositions, f.time_rule, f.delay, f.retry_count, f.recoveries, {schema}.unite_tags(f.error, c.error) AS error,
      {schema}.unite_tags(f.bury_error, c.error) AS bury_error, f.grp, c.perform_at, c.first_push, c.score, c.data, c.meta, c.more_scores, c.more_data, c.more_meta
  ), payloads AS (
    SELECT g.*, 0 AS position, g.score AS p_score, g.data AS p_data, g.meta AS p_meta FROM gone g
    UNION ALL
    SELECT g.*, m.position, m.score, m.data, m.meta
    FROM gone g, unnest(g.more_scores, g.more_data, g.more_meta) WITH ORDINALITY m (score, data, meta, position)
  ), decided AS (
    SELECT p.*, get_byte(p.dispositions, least(p.position, octet_length(p.dispositions) - 1)::int) AS disposition FROM payloads p
  )
  -- The fields of an arrival, in order: kind, rule, rule_limit, perform_at, first_push, score,
  -- retry_count, recoveries, id, error, data, meta, grp.
  SELECT (SELECT array_agg(g.place) FROM gone g),
    (SELECT count(*) FROM gone g WHERE g.processed), (SELECT count(*) FROM gone g WHERE g.failed),
    array_agg(ROW('put_back', CASE d.time_rule WHEN c_awaits THEN c_earliest ELSE c_keep END, 0,
      CASE d.time_rule WHEN c_same THEN d.perform_at ELSE {schema}.later(p_now, d.delay) END, d.first_push,
      d.p_score, d.retry_count, d.recoveries, d.id, d.error, d.p_data, d.p_meta, NULL)::{schema}.arrival
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = c_requeue),
    array_agg(ROW('buried', 0, 0, p_now, 0, d.p_score, 0, 0, d.id, d.bury_error, d.p_data, d.p_meta, d.grp)::{schema}.arrival
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = c_bury)
  INTO done, processed, failed, put_back, buried FROM decided d;
END {$};
