-- Merges the rest after merge has inserted the first arrival of each id: first arrivals that met a
-- queued job, and later arrivals. Returns by how many more jobs are fresh, and so by how many
-- fewer are retrying, and the earliest PerformAt of these jobs. Each arrival is looked at once.
CREATE FUNCTION {schema}.merge_rest(p_shard int, p_arrivals {schema}.inbox[], OUT fresh int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  c_keep     CONSTANT smallint := 0; -- core.Keep
  c_earliest CONSTANT smallint := 1; -- core.Earliest; of a job put back, core.PutBack.Awaits
  c_never    CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  a          record;
  j          record;
  v_fresh    boolean;
BEGIN
  fresh := 0;
  FOR a IN
    SELECT u.id, u.kind, u.rule, u.rule_limit, u.perform_at, u.first_push, u.retry_count, u.recoveries, u.failures, u.tags, u.slot,
      row_number() OVER w AS nth, count(*) OVER (PARTITION BY u.id) AS n
    FROM unnest(p_arrivals) WITH ORDINALITY u WINDOW w AS (PARTITION BY u.id ORDER BY u.ordinality)
  LOOP
    IF a.nth = 1 THEN
      SELECT q.perform_at, q.first_push, q.retry_count, q.recoveries, q.failures, q.tags, q.slot, q.prior_retry_count IS NOT NULL AS met, false AS changed, false AS pushed_since INTO j
      FROM {schema}.jobs q WHERE q.shard = p_shard AND q.id = a.id;
      v_fresh := j.retry_count < 0;
    END IF;
    CONTINUE WHEN a.n = 1 AND NOT j.met; -- inserted by merge

    IF a.nth > 1 OR j.met THEN
      j.changed := j.changed OR a.kind <> 'push' OR a.rule <> c_keep OR a.first_push < j.first_push OR a.recoveries > j.recoveries
        OR a.tags <> '';
      j.pushed_since := a.kind = 'put_back' AND a.rule = c_earliest AND (j.pushed_since OR j.first_push <> a.first_push);
      j.first_push := least(j.first_push, a.first_push);
      j.recoveries := greatest(j.recoveries, a.recoveries);
      j.tags := {schema}.unite_tags(j.tags, a.tags);
      IF a.kind = 'revived' AND j.retry_count >= 0 AND j.perform_at = c_never THEN
        NULL; -- a held job stays held
      ELSIF a.kind <> 'push' THEN
        j.perform_at := CASE WHEN j.pushed_since THEN least(j.perform_at, a.perform_at) ELSE a.perform_at END;
        j.retry_count := a.retry_count;
        j.failures := a.failures;
        j.slot := a.slot;
      ELSIF j.retry_count < 0 AND j.slot IS NULL AND a.rule <> c_keep THEN
        j.perform_at := {schema}.apply_push_rule(a.rule, a.rule_limit, j.perform_at, a.perform_at, j.first_push);
      END IF;
    END IF;

    CONTINUE WHEN a.nth < a.n;
    IF j.changed THEN
      UPDATE {schema}.jobs q SET perform_at = j.perform_at, first_push = j.first_push, retry_count = j.retry_count,
        recoveries = j.recoveries, failures = j.failures, tags = j.tags, slot = j.slot
      WHERE q.shard = p_shard AND q.id = a.id;
    END IF;

    fresh := fresh + (j.retry_count < 0)::int - v_fresh::int;
    earliest := least(earliest, j.perform_at);
  END LOOP;

  PERFORM {schema}.add_payloads(array_agg(p_shard), array_agg(id), array_agg(score), array_agg(data), array_agg(meta))
  FROM (
    SELECT DISTINCT ON (id, data) id, score, data, meta
    FROM unnest(p_arrivals) WITH ORDINALITY c
    ORDER BY id, data, score, ordinality
  ) c;
END {$};
