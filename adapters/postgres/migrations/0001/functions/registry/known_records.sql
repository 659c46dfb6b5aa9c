-- Lists the records of an owner that record will store: those that count more than the row of their
-- queue and minute, of known queues and of minutes near now that are not closed. place is the index of
-- a record in the arrays, from 1; known and stats are of the row that it replaces, 0 and NULL if there
-- is none. Each LIMIT makes the planner look rows up one by one, whatever it knows of the tables.
CREATE FUNCTION {schema}.known_records(p_owner text, p_now bigint, p_queues text[], p_minutes bigint[], p_counted bigint[])
RETURNS TABLE (place bigint, queue int, known bigint, stats bytea) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS {$}
#variable_conflict use_column
DECLARE
  c_minute CONSTANT bigint := 60000000;
  c_hour   CONSTANT bigint := 60 * c_minute;
  c_day    CONSTANT bigint := 24 * c_hour;
  v_now    bigint := {schema}.clock(p_now);
BEGIN
  RETURN QUERY SELECT r.place, q.id, coalesce(h.counted, 0), h.stats
  FROM unnest(p_queues, p_minutes, p_counted) WITH ORDINALITY r (queue, minute, counted, place)
  JOIN {schema}.queues q ON q.name = r.queue COLLATE "C"
  LEFT JOIN LATERAL (
    SELECT m.counted, m.stats FROM {schema}.minute_records m
    WHERE m.queue = q.id AND m.minute = r.minute AND m.owner = p_owner LIMIT 1) h ON true
  LEFT JOIN LATERAL (
    SELECT e.closed FROM {schema}.day_records e
    WHERE e.queue = q.id AND e.day = r.minute - r.minute % c_day LIMIT 1) d ON true
  WHERE r.minute BETWEEN v_now - v_now % c_minute - c_day AND v_now + c_hour
  AND r.minute > coalesce(d.closed, -1) AND r.counted > coalesce(h.counted, 0)
  ORDER BY r.place;
END {$};
