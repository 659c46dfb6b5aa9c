-- Merges what is left after merge has put in the first arrival of each id: what met a queued job,
-- p_met, and later arrivals. Returns by how many more jobs are fresh, and so by how many fewer are
-- retrying, and the earliest PerformAt of the jobs that arrivals touched.
CREATE FUNCTION {schema}.merge_rest(p_shard int, p_arrivals {schema}.arrival[], p_met text[], OUT fresh int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  c_keep CONSTANT smallint := 0; -- core.Keep
  v_round  int := 0;
  v_found  int;
  v_change int;
BEGIN
  fresh := 0;
  UPDATE {schema}.jobs j SET first_push = least(j.first_push, c.first_push), recoveries = greatest(j.recoveries, c.recoveries)
  FROM (SELECT id, min(first_push) AS first_push, max(recoveries) AS recoveries FROM unnest(p_arrivals) GROUP BY id) c
  WHERE j.shard = p_shard AND j.id = c.id AND (c.first_push < j.first_push OR c.recoveries > j.recoveries);

  -- A step is an arrival that may change a state. Payloads that came together are one step;
  -- pushes that keep the time are no step once something is queued.
  LOOP
    v_round := v_round + 1;
    WITH arrivals AS (
      SELECT c.*, lag(ROW(kind, perform_at, retry_count, error)) OVER w AS before, row_number() OVER w AS nth
      FROM unnest(p_arrivals) WITH ORDINALITY c
      WINDOW w AS (PARTITION BY id ORDER BY ordinality)
    ), steps AS (
      SELECT a.*, row_number() OVER (PARTITION BY id ORDER BY ordinality) AS round FROM arrivals a
      WHERE nth = 1 OR NOT (kind = 'push' AND rule = c_keep)
        AND (kind = 'push' OR ROW(kind, perform_at, retry_count, error) IS DISTINCT FROM before)
    ), step AS MATERIALIZED (
      SELECT * FROM steps WHERE round = v_round
    ), done AS (
      UPDATE {schema}.jobs j SET
        prior_retry_count = j.retry_count,
        perform_at = CASE
          WHEN s.kind <> 'push' THEN s.perform_at
          WHEN j.retry_count < 0 THEN {schema}.apply_push_rule(s.rule, s.rule_limit, j.perform_at, s.perform_at, j.first_push)
          ELSE j.perform_at END,
        retry_count = CASE WHEN s.kind = 'push' THEN j.retry_count ELSE s.retry_count END,
        error = CASE WHEN s.kind = 'push' THEN j.error ELSE s.error END
      FROM step s
      WHERE j.shard = p_shard AND j.id = s.id AND (v_round > 1 OR s.id = ANY (p_met)) AND NOT (s.kind = 'push' AND s.rule = c_keep)
      RETURNING CASE WHEN j.prior_retry_count < 0 THEN 0 ELSE 1 END - CASE WHEN j.retry_count < 0 THEN 0 ELSE 1 END AS change
    )
    SELECT (SELECT count(*) FROM step), (SELECT coalesce(sum(change), 0) FROM done) INTO v_found, v_change;
    fresh := fresh + v_change;
    EXIT WHEN v_found = 0;
  END LOOP;

  PERFORM {schema}.add_payloads(array_agg(p_shard), array_agg(id), array_agg(score), array_agg(data), array_agg(meta))
  FROM (
    SELECT DISTINCT ON (id, data) id, score, data, meta
    FROM unnest(p_arrivals) WITH ORDINALITY c
    ORDER BY id, data, score, ordinality
  ) c;
  SELECT min(j.perform_at) INTO earliest FROM {schema}.jobs j
  WHERE j.shard = p_shard AND j.id = ANY (SELECT id FROM unnest(p_arrivals));
END {$};
