-- Settling.

-- Removes claimed jobs and gives what becomes of them. The arrays are one element for each
-- settlement; p_flags is 1 for processed + 2 for failed, NULL if all are processed. Those from p_rest on are NULL if
-- all jobs are gone whole; else p_rest is a core.Disposition, and x_ lists exceptions: of
-- the settlement x_place the payload x_position. done are the places carried out: those
-- whose (id, mark) is claimed by a row that nobody else holds locked.
CREATE FUNCTION {schema}.settle_claimed(p_shard int, p_now bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_flags smallint[],
  p_rest smallint[], p_same_time boolean[], p_delays bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_bury_errors text[],
  x_place int[], x_position int[], x_disposition smallint[],
  OUT done int[], OUT processed int, OUT failed int, OUT jobs {schema}.coming[], OUT dead {schema}.coming[])
LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  IF p_rest IS NULL THEN
    WITH found AS MATERIALIZED (
      SELECT c.at, s.place, coalesce(s.flags, 1) AS flags
      FROM unnest(p_ids, p_tokens, p_numbers, p_flags) WITH ORDINALITY s (id, token, number, flags, place), LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE SKIP LOCKED
      ) c
    ), gone AS (
      DELETE FROM {schema}.claimed c USING found f WHERE c.ctid = f.at RETURNING f.place, f.flags
    )
    SELECT array_agg(g.place), count(*) FILTER (WHERE g.flags & 1 > 0), count(*) FILTER (WHERE g.flags & 2 > 0)
    INTO done, processed, failed FROM gone g;
    RETURN;
  END IF;
  WITH found AS MATERIALIZED (
    SELECT c.at, s.*
    FROM unnest(p_ids, p_tokens, p_numbers, p_flags, p_rest, p_same_time, p_delays, p_retries, p_recoveries, p_errors, p_bury_errors)
      WITH ORDINALITY s (id, token, number, flags, rest, same_time, delay, retries, recoveries, error, bury_error, place), LATERAL (
      SELECT c.ctid AS at FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE SKIP LOCKED
    ) c
  ), gone AS (
    DELETE FROM {schema}.claimed c USING found f WHERE c.ctid = f.at
    RETURNING f.id, f.place, f.flags, f.rest, f.same_time, f.delay, f.retries, f.recoveries, f.error, f.bury_error,
      c.perform_at, c.first_push, c.score, c.data, c.meta, c.more_scores, c.more_data, c.more_meta
  ), payloads AS (
    SELECT g.*, 0 AS position, g.score AS p_score, g.data AS p_data, g.meta AS p_meta FROM gone g
    UNION ALL
    SELECT g.*, m.position, m.score, m.data, m.meta
    FROM gone g, unnest(g.more_scores, g.more_data, g.more_meta) WITH ORDINALITY m (score, data, meta, position)
  ), decided AS (
    SELECT p.*, coalesce(CASE WHEN x_place IS NOT NULL THEN (
      SELECT x.disposition FROM unnest(x_place, x_position, x_disposition) x (place, position, disposition)
      WHERE x.place = p.place AND x.position = p.position
    ) END, p.rest) AS disposition FROM payloads p
  )
  SELECT (SELECT array_agg(g.place) FROM gone g),
    (SELECT count(*) FROM gone g WHERE g.flags & 1 > 0), (SELECT count(*) FROM gone g WHERE g.flags & 2 > 0),
    array_agg(ROW('r', 0, 0, CASE WHEN d.same_time THEN d.perform_at ELSE {schema}.later(p_now, d.delay) END, d.first_push,
      d.p_score, d.retries, d.recoveries, d.id, d.error, d.p_data, d.p_meta)::{schema}.coming
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = 1),
    array_agg(ROW('d', 0, 0, p_now, 0, d.p_score, 0, 0, d.id, d.bury_error, d.p_data, d.p_meta)::{schema}.coming
      ORDER BY d.place, d.position) FILTER (WHERE d.disposition = 2)
  INTO done, processed, failed, jobs, dead FROM decided d;
END {$};

-- Marks claimed jobs as begun. Gives the places of those that are not claimed so, or that
-- another session holds locked.
CREATE FUNCTION {schema}.begin_claimed(p_shard int, p_ids text[], p_tokens bigint[], p_numbers bigint[])
RETURNS int[] LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  UPDATE {schema}.claimed c SET begun = true
  WHERE c.ctid = ANY (ARRAY(
    SELECT f.at FROM unnest(p_ids, p_tokens, p_numbers) u (id, token, number), LATERAL (
      SELECT c.ctid AS at FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number FOR UPDATE SKIP LOCKED
    ) f)) AND c.begun IS NOT TRUE;
  RETURN (
    SELECT array_agg(u.place ORDER BY u.place) FROM unnest(p_ids, p_tokens, p_numbers) WITH ORDINALITY u (id, token, number, place)
    WHERE NOT EXISTS (SELECT FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number AND c.begun));
END {$};

