-- Merges arrivals into a shard's queue, for each id in the order given (docs/rules.md 2). Returns
-- the change of the counts and the earliest PerformAt of the jobs that it touched. One statement
-- inserts the first arrival of each id, in order of id; merge_rest then locks nothing new. It also
-- compares FirstPush, so the row that an arrival met keeps its own until then.
CREATE FUNCTION {schema}.merge(p_shard int, p_arrivals {schema}.inbox[], OUT fresh int, OUT retrying int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_ids  int;
  v_met  boolean;
  v_more boolean;
  v_rest record;
  v_rule int := (SELECT s.merge_rule FROM {schema}.shards s WHERE s.id = p_shard);
BEGIN
  IF v_rule <> 0 THEN
    SELECT m.fresh, m.retrying, m.earliest INTO fresh, retrying, earliest FROM {schema}.merge_by_rule(p_shard, v_rule, p_arrivals) m;
    RETURN;
  END IF;
  WITH first AS (
    SELECT * FROM (
      SELECT c.*, row_number() OVER w AS nth, count(*) OVER (PARTITION BY id) AS n
      FROM unnest(p_arrivals) WITH ORDINALITY c
      WINDOW w AS (PARTITION BY id ORDER BY ordinality)
    ) c WHERE nth = 1
  ), put AS (
    INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, low, data, meta, failures, tags, slot)
    SELECT p_shard, id, perform_at, first_push, retry_count, recoveries, n > 1, score, score, data, meta, failures, tags, slot
    FROM first ORDER BY id
    ON CONFLICT (shard, id) DO UPDATE SET
      prior_retry_count = j.retry_count,
      parked = false, -- it may be free; if not, claims skip it again
      low = least(j.low, excluded.low),
      recoveries = greatest(j.recoveries, excluded.recoveries),
      has_more = j.has_more OR excluded.has_more OR j.data <> excluded.data,
      score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
      meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
    RETURNING id, perform_at, retry_count, prior_retry_count, has_more
  )
  SELECT count(*), count(*) FILTER (WHERE prior_retry_count IS NULL AND retry_count < 0),
    count(*) FILTER (WHERE prior_retry_count IS NULL AND retry_count >= 0),
    min(perform_at) FILTER (WHERE prior_retry_count IS NULL AND NOT has_more),
    bool_or(prior_retry_count IS NOT NULL), bool_or(has_more)
  INTO v_ids, fresh, retrying, earliest, v_met, v_more FROM put;

  IF v_met OR v_more THEN
    SELECT * INTO v_rest FROM {schema}.merge_rest(p_shard, p_arrivals);
    fresh := fresh + v_rest.fresh;
    retrying := retrying - v_rest.fresh;
    earliest := least(earliest, v_rest.earliest);
  END IF;
END {$};
