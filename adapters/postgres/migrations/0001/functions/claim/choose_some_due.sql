-- Does what choose_due does, for a shard where not all due jobs may be claimed together. While the
-- inbox is long, it looks at some thousands of jobs at most.
CREATE FUNCTION {schema}.choose_some_due(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint, p_inbox boolean, p_first boolean,
  OUT places tid[], OUT bytes bigint, OUT first_due bigint, OUT last_due bigint,
  OUT passed bigint, OUT busy tid[], OUT first_busy bigint, OUT next_due bigint, OUT next_single boolean, OUT try_each boolean, OUT until bigint)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_most  CONSTANT int := 5000;
  c_alone CONSTANT int := 2; -- core.AloneRecoveries
  v_limit int := p_want + 1;
  v_seen  int;
BEGIN
  LOOP
    -- nth, sum and singles count jobs that are neither claimed nor in the inbox, up to this job.
    -- fits has to hold for a prefix of the free jobs, so that none is overtaken: each of its
    -- conditions must be on such a running count.
    --
    -- A condition that skips a job for a time belongs in free, and in passed as f.inbox does, which
    -- keeps the floor down. It also belongs in choose_due, claim_each, head and turn_fast.
    --
    -- A condition that skips a job until some call ends the condition stands beside NOT j.parked in
    -- all of these and in rescan_if_due. The floor passes such a job, so that call uses lower_floor
    -- and wakes the shard. The value is a column of shards, since head is called without a turn.
    --
    -- Both kinds change oldest (the lag) and standing.go (the jobs ahead). If a push can change the
    -- value, they change claim_together and the DELETE of turn_fast too.
    SELECT count(*), min(f.perform_at) FILTER (WHERE f.inbox),
      array_agg(f.at) FILTER (WHERE f.claimed), min(f.perform_at) FILTER (WHERE f.claimed),
      array_agg(f.at) FILTER (WHERE f.take), min(f.perform_at) FILTER (WHERE f.take), max(f.perform_at) FILTER (WHERE f.take),
      max(f.sum) FILTER (WHERE f.take), min(f.perform_at) FILTER (WHERE f.left),
      (array_agg(f.single ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1],
      (array_agg(f.single AND f.nth <= p_want ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1],
      CASE WHEN p_inbox THEN max(f.perform_at) ELSE p_now END
    INTO v_seen, passed, busy, first_busy, places, first_due, last_due, bytes, next_due, next_single, try_each, until
    FROM (
      SELECT o.*, o.free AND o.fits AS take, o.free AND NOT o.fits AS left
      FROM (SELECT w.*, w.nth <= p_want AND (p_first AND w.nth = 1 OR w.sum <= p_bytes) AND w.singles = 0 AS fits FROM (
        SELECT d.*, sum(CASE WHEN d.free THEN 1 ELSE 0 END) OVER w AS nth, sum(CASE WHEN d.free THEN d.size ELSE 0 END) OVER w AS sum,
          sum(CASE WHEN d.single AND d.free THEN 1 ELSE 0 END) OVER w AS singles
        FROM (SELECT b.*, NOT b.claimed AND NOT b.inbox AS free FROM (
          SELECT j.ctid AS at, j.perform_at, j.id, j.has_more OR j.recoveries >= c_alone AS single, octet_length(j.data) AS size,
            (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NOT NULL AS claimed,
            CASE WHEN p_inbox THEN (
              SELECT i.shard FROM {schema}.inbox i WHERE i.shard + 0 = j.shard AND i.id = j.id AND i.kind IN ('push', 'put_back') LIMIT 1
            ) IS NOT NULL ELSE false END AS inbox
          FROM {schema}.jobs j
          WHERE j.shard = p_shard AND NOT j.parked AND j.perform_at >= p_from AND j.perform_at <= p_now
          ORDER BY j.perform_at, j.id LIMIT v_limit
        ) b) d WINDOW w AS (ORDER BY d.perform_at, d.id ROWS UNBOUNDED PRECEDING)
      ) w) o
    ) f;

    EXIT WHEN next_due IS NOT NULL OR v_seen < v_limit OR p_inbox AND v_limit >= c_most;
    v_limit := 2 * v_limit + 256; -- some were skipped
  END LOOP;

  IF next_due IS NULL AND v_seen >= v_limit THEN
    passed := least(passed, until); -- the jobs behind were not looked at
  END IF;
END {$};
