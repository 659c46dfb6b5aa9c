-- Chooses due jobs to claim together, from p_from on: the first p_want, as long as they have one
-- payload, may run beside others and fit into p_bytes. If p_first is set, the first job always
-- fits. p_inbox is whether the inbox may hold something for an id. Such an id is skipped, as is a
-- claimed one. Returns places, the ctids of the chosen jobs; bytes, their size; first_due and
-- last_due, their PerformAts; passed, the earliest job skipped for the inbox; busy, the ctids of
-- jobs skipped since their ids are claimed, and first_busy, the earliest of them; next_due, the
-- first job left; next_single, whether that job has several payloads or must run alone; try_each,
-- whether claim_each might take it, up to the PerformAt until.
--
-- An id may be claimed only if the inbox holds nothing for it. Otherwise what a caller's
-- transaction pushed or put back would be overtaken by later pushes. So jobs are chosen, then
-- locked, so that no push adds to them, and the next statement sees what the inbox holds for them
-- by then: a payload that is pushed after a transaction has committed is never claimed before that
-- transaction's.
CREATE FUNCTION {schema}.choose_due(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint, p_inbox boolean, p_first boolean,
  OUT places tid[], OUT bytes bigint, OUT first_due bigint, OUT last_due bigint,
  OUT passed bigint, OUT busy tid[], OUT first_busy bigint, OUT next_due bigint, OUT next_single boolean, OUT try_each boolean, OUT until bigint)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_alone CONSTANT int := 2; -- core.AloneRecoveries
  v_times    bigint[];
  v_together boolean; -- whether all of them may be claimed together
BEGIN
  SELECT array_agg(d.at), array_agg(d.perform_at), sum(d.size), bool_and(d.together)
  INTO places, v_times, bytes, v_together
  FROM (
    SELECT j.ctid AS at, j.perform_at, octet_length(j.data) AS size, NOT j.has_more AND j.recoveries < c_alone
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
      AND CASE WHEN p_inbox THEN (
        SELECT i.shard FROM {schema}.inbox i WHERE i.shard + 0 = j.shard AND i.id = j.id AND i.kind IN ('push', 'put_back') LIMIT 1
      ) IS NULL ELSE true END AS together
    FROM {schema}.jobs j
    WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_from AND j.perform_at <= p_now
    ORDER BY j.perform_at, j.id LIMIT p_want + 1
  ) d;

  IF bytes > p_bytes OR NOT v_together THEN
    SELECT c.places, c.bytes, c.first_due, c.last_due, c.passed, c.busy, c.first_busy, c.next_due, c.next_single, c.try_each, c.until
    INTO places, bytes, first_due, last_due, passed, busy, first_busy, next_due, next_single, try_each, until
    FROM {schema}.choose_some_due(p_shard, p_from, p_now, p_want, p_bytes, p_inbox, p_first) c;
    RETURN;
  END IF;

  try_each := false; next_single := false;
  first_due := v_times[1];
  last_due := v_times[least(p_want, cardinality(places))];
  next_due := v_times[p_want + 1];
  IF next_due IS NOT NULL THEN
    places := places[:p_want];
  END IF;
END {$};
