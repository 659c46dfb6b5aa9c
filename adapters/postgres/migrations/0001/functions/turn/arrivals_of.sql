-- Returns what a claimed job leaves by its settlement: a row of the inbox for each payload that is
-- put back or buried, in order. The payloads after the first one of a job put back are merged like
-- a push onto it: rows may be merged in parts, and a push in between may have moved the job.
CREATE FUNCTION {schema}.arrivals_of(c {schema}.claimed, s {schema}.settlement, p_now bigint)
RETURNS SETOF {schema}.inbox LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_requeue  CONSTANT text := '1'; -- core.Requeue
  c_bury     CONSTANT text := '2'; -- core.Bury
  c_same     CONSTANT smallint := 1; -- core.PutBack.SameTime
  c_awaits   CONSTANT smallint := 2; -- core.PutBack.Awaits
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest: the earlier of both times if it was pushed since
  v_put_back {schema}.inbox;
  v_buried   {schema}.inbox;
  v_goes     text;
  v_score    double precision := c.score;
  v_data     bytea := c.data;
  v_meta     bytea := c.meta;
  -- A subscript of a variable is quick, one of a field is not.
  v_scores   double precision[] := c.more_scores;
  v_datas    bytea[] := c.more_data;
  v_metas    bytea[] := c.more_meta;
BEGIN
  IF position(c_requeue IN s.dispositions) > 0 THEN
    v_put_back := {schema}.new_arrival(c.shard, 'put_back', c.id);
    v_put_back.rule := CASE s.time_rule WHEN c_awaits THEN c_earliest ELSE c_keep END;
    v_put_back.perform_at := CASE s.time_rule WHEN c_same THEN c.perform_at ELSE {schema}.later(p_now, s.delay) END;
    v_put_back.first_push := c.first_push;
    v_put_back.retry_count := s.retry_count;
    v_put_back.recoveries := s.recoveries;
    v_put_back.failures := s.failures;
    v_put_back.tags := c.tags;
    v_put_back.slot := s.slot;
  END IF;
  IF position(c_bury IN s.dispositions) > 0 THEN
    v_buried := {schema}.new_arrival(c.shard, 'buried', c.id);
    v_buried.letter := {schema}.letter_of(c, s, p_now);
  END IF;

  FOR n IN 0..coalesce(cardinality(v_datas), 0) LOOP
    IF n > 0 THEN
      v_score := v_scores[n];
      v_data := v_datas[n];
      v_meta := v_metas[n];
    END IF;

    v_goes := substr(s.dispositions, least(n + 1, length(s.dispositions)), 1);
    IF v_goes = c_requeue THEN
      v_put_back.score := v_score;
      v_put_back.data := v_data;
      v_put_back.meta := v_meta;
      RETURN NEXT v_put_back;
      v_put_back.kind := 'push';
      v_put_back.rule := c_keep;
    ELSIF v_goes = c_bury THEN
      v_buried.score := v_score;
      v_buried.data := v_data;
      v_buried.meta := v_meta;
      RETURN NEXT v_buried;
    END IF;
  END LOOP;
END {$};
