-- Claiming.

-- An id may be claimed only if the inbox holds nothing for it, or what a caller's
-- transaction pushed or put back would be overtaken by what came after it. choose passes
-- over the ids that it sees there. Jobs are then locked, so that no push adds to them, and
-- what the inbox holds for them by then is seen by the next statement. What is pushed
-- directly after a transaction has committed is therefore never claimed before it.

-- Chooses due jobs to claim together, of those from p_from on: the first p_want, as long as
-- they have one payload, may run beside others and p_bytes lasts. p_inbox says that ids may be in
-- the inbox. at are their places, used their bytes, first and last the ends of their
-- PerformAt. passed is the earliest of the ids passed over, claimed or in the inbox. next is
-- the first job left, odd whether it has more payloads or must run alone, each whether claim_each
-- might take it, of the jobs until the PerformAt until.
CREATE FUNCTION {schema}.choose(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint, p_inbox boolean,
  OUT at tid[], OUT first bigint, OUT last bigint, OUT used bigint,
  OUT passed bigint, OUT next bigint, OUT odd boolean, OUT each boolean, OUT until bigint)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  v_times bigint[];
  v_plain boolean;
BEGIN
  SELECT array_agg(d.at), array_agg(d.perform_at), sum(d.size), bool_and(d.plain)
  INTO at, v_times, used, v_plain
  FROM (
    SELECT j.ctid AS at, j.perform_at, octet_length(j.data) AS size, NOT j.more AND j.recoveries < 2
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
      AND CASE WHEN p_inbox THEN (SELECT i.shard FROM {schema}.inbox i WHERE i.shard = j.shard AND i.id = j.id AND i.kind IN ('p', 'r') LIMIT 1) IS NULL ELSE true END AS plain
    FROM {schema}.jobs j
    WHERE j.shard = p_shard AND j.perform_at >= p_from AND j.perform_at <= p_now
    ORDER BY j.perform_at, j.id LIMIT p_want + 1
  ) d;
  IF used > p_bytes OR NOT v_plain THEN
    SELECT * INTO at, first, last, used, passed, next, odd, each, until
    FROM {schema}.choose_some(p_shard, p_from, p_now, p_want, p_bytes, p_inbox);
    RETURN;
  END IF;
  each := false; odd := false;
  first := v_times[1];
  last := v_times[least(p_want, cardinality(at))];
  next := v_times[p_want + 1];
  IF next IS NOT NULL THEN
    at := at[:p_want];
  END IF;
END {$};

-- choose where not all that is due may be taken together. While the inbox is long, it looks
-- at some thousands of jobs at most.
CREATE FUNCTION {schema}.choose_some(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint, p_inbox boolean,
  OUT at tid[], OUT first bigint, OUT last bigint, OUT used bigint,
  OUT passed bigint, OUT next bigint, OUT odd boolean, OUT each boolean, OUT until bigint)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_most CONSTANT int := 5000;
  v_limit int := p_want + 1;
  v_seen  int;
BEGIN
  LOOP
    SELECT count(*), min(f.perform_at) FILTER (WHERE f.busy),
      array_agg(f.at) FILTER (WHERE f.take), min(f.perform_at) FILTER (WHERE f.take), max(f.perform_at) FILTER (WHERE f.take),
      max(f.sum) FILTER (WHERE f.take), min(f.perform_at) FILTER (WHERE f.left),
      (array_agg(f.odd ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1],
      (array_agg(f.odd AND f.nth <= p_want ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1],
      CASE WHEN p_inbox THEN max(f.perform_at) ELSE p_now END
    INTO v_seen, passed, at, first, last, used, next, odd, each, until
    FROM (
      SELECT o.*, NOT o.busy AND o.fits AS take, NOT o.busy AND NOT o.fits AS left
      FROM (SELECT w.*, w.nth <= p_want AND (w.nth = 1 OR w.sum <= p_bytes) AND w.odds = 0 AS fits FROM (
        SELECT d.*, sum(CASE WHEN d.busy THEN 0 ELSE 1 END) OVER w AS nth, sum(CASE WHEN d.busy THEN 0 ELSE d.size END) OVER w AS sum,
          sum(CASE WHEN d.odd AND NOT d.busy THEN 1 ELSE 0 END) OVER w AS odds
        FROM (
          SELECT j.ctid AS at, j.perform_at, j.id, j.more OR j.recoveries > 1 AS odd, octet_length(j.data) AS size,
            CASE WHEN (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NOT NULL THEN true
              WHEN p_inbox THEN (SELECT i.shard FROM {schema}.inbox i WHERE i.shard = j.shard AND i.id = j.id AND i.kind IN ('p', 'r') LIMIT 1) IS NOT NULL ELSE false END AS busy
          FROM {schema}.jobs j
          WHERE j.shard = p_shard AND j.perform_at >= p_from AND j.perform_at <= p_now
          ORDER BY j.perform_at, j.id LIMIT v_limit
        ) d WINDOW w AS (ORDER BY d.perform_at, d.id ROWS UNBOUNDED PRECEDING)
      ) w) o
    ) f;
    EXIT WHEN next IS NOT NULL OR v_seen < v_limit OR p_inbox AND v_limit >= c_most;
    v_limit := 2 * v_limit + 256; -- some were claimed, or are in the inbox
  END LOOP;
END {$};

-- Claims due jobs of those from p_from on, in order, as far as they fit. ids are the claimed
-- ones. fresh and retries are how the counts of queued jobs change, by what was really
-- removed. missed says that due jobs were left which a push holds locked, or which are in the
-- inbox by now. floor is where the next claim has to begin. next is the first job left, if it
-- is known to be claimable by itself.
CREATE FUNCTION {schema}.claim_due(p_shard int, p_from bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_lane bigint, p_want int, p_per_job bigint, p_bytes bigint, p_inbox boolean,
  OUT ids text[], OUT fresh int, OUT retries int, OUT missed boolean, OUT floor bigint, OUT next bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c record;
  e record;
BEGIN
  fresh := 0; retries := 0; missed := false;
  c := {schema}.choose(p_shard, p_from, p_now, p_want, p_bytes, p_inbox);
  IF c.at IS NOT NULL THEN
    SELECT t.ids, t.fresh, t.retries INTO ids, fresh, retries
    FROM {schema}.claim_together(p_shard, c.at, p_now, p_token, p_number, p_owner, p_node, p_lane) t;
    missed := coalesce(cardinality(ids), 0) < cardinality(c.at);
  END IF;
  IF c.each AND NOT missed THEN
    e := {schema}.claim_each(p_shard, c.next, c.until, p_now, p_token, p_number, p_owner, p_node, p_lane, p_want, p_per_job, p_bytes,
      p_inbox, coalesce(cardinality(ids), 0), coalesce(c.used, 0));
    ids := ids || e.ids; fresh := fresh + e.fresh; retries := retries + e.retries; missed := e.missed;
  END IF;
  IF missed THEN
    floor := least(c.passed, c.first, c.next);
  ELSE
    floor := least(p_now - 1000000, c.passed, coalesce(c.last, c.next));
  END IF;
  next := CASE WHEN NOT c.odd THEN c.next END;
END {$};

-- Claims the jobs at places that choose has chosen, but for those that a push holds locked or
-- that the inbox holds something for.
CREATE FUNCTION {schema}.claim_together(p_shard int, p_at tid[], p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_lane bigint, OUT ids text[], OUT fresh int, OUT retries int)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_locked tid[] := ARRAY(SELECT j.ctid FROM {schema}.jobs j WHERE j.ctid = ANY (p_at) FOR UPDATE SKIP LOCKED);
BEGIN
  -- A push may have changed a job after it was chosen and before it was locked.
  WITH taken AS (
    DELETE FROM {schema}.jobs j
    WHERE j.ctid = ANY (v_locked) AND j.shard = p_shard AND j.perform_at <= p_now AND NOT j.more AND j.recoveries < 2
      AND (SELECT i.shard FROM {schema}.inbox i WHERE i.shard = j.shard AND i.id = j.id AND i.kind IN ('p', 'r') LIMIT 1) IS NULL
    RETURNING j.*
  ), put AS (
    INSERT INTO {schema}.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, lane, id,
      node, owner, error, data, meta)
    SELECT p_token, p_number, j.perform_at, j.first_push, p_now, j.score, j.shard, j.retry_count, j.recoveries, p_lane, j.id,
      p_node, p_owner, j.error, j.data, j.meta FROM taken j
    RETURNING id, retry_count
  )
  SELECT array_agg(c.id), - count(*) FILTER (WHERE c.retry_count < 0), - count(*) FILTER (WHERE c.retry_count >= 0)
  INTO ids, fresh, retries FROM put c;
END {$};

-- Claims due jobs one by one: those with several payloads, or that must run alone, until the
-- PerformAt p_until. It starts with so many jobs, payloads and bytes claimed in this turn and
-- ends at the budget, in front of a job that must run alone, or at one that a push holds
-- locked or that is in the inbox by now; that is a miss.
CREATE FUNCTION {schema}.claim_each(p_shard int, p_from bigint, p_until bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_lane bigint, p_want int, p_per_job bigint, p_bytes bigint, p_inbox boolean, p_jobs int, p_used bigint,
  OUT ids text[], OUT fresh int, OUT retries int, OUT missed boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000;
  v_jobs     int := p_jobs;
  v_payloads int := p_jobs;
  v_bytes    bigint := p_used;
  v_at       bigint := p_from;
  v_id       text := '';
  v_again    int;
  j          record;
  p          record;
BEGIN
  fresh := 0; retries := 0; missed := false;
  WHILE v_jobs < p_want AND v_payloads < c_payloads LOOP
    SELECT q.perform_at, q.id, q.recoveries INTO v_at, v_id, v_again FROM {schema}.jobs q
    WHERE q.shard = p_shard AND (q.perform_at, q.id) > (v_at, v_id COLLATE "C") AND q.perform_at <= p_until
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = q.shard AND c.id = q.id) IS NULL
      AND CASE WHEN p_inbox THEN (SELECT i.shard FROM {schema}.inbox i WHERE i.shard = q.shard AND i.id = q.id AND i.kind IN ('p', 'r') LIMIT 1) IS NULL ELSE true END
    ORDER BY q.perform_at, q.id LIMIT 1;
    EXIT WHEN NOT FOUND OR v_again > 1 AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard);
    SELECT q.* INTO j FROM {schema}.jobs q
    WHERE q.shard = p_shard AND q.id = v_id COLLATE "C" AND q.perform_at <= p_now FOR UPDATE SKIP LOCKED;
    missed := NOT FOUND;
    EXIT WHEN missed;
    missed := EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = p_shard AND i.id = v_id COLLATE "C" AND i.kind IN ('p', 'r'));
    EXIT WHEN missed;

    -- The first payload of the turn always fits; what follows one that does not, never does.
    SELECT count(*) AS n, sum(f.size) AS size, array_agg(f.score) AS scores, array_agg(f.data) AS data, array_agg(f.meta) AS meta INTO p
    FROM (
      SELECT o.*, octet_length(o.data) AS size, sum(octet_length(o.data)) OVER w AS sum, row_number() OVER w AS nth
      FROM {schema}.payloads_of(p_shard, j.id, least(p_per_job, c_payloads - v_payloads)::int) o
      WINDOW w AS (ORDER BY o.score, o.data ROWS UNBOUNDED PRECEDING)
    ) f WHERE v_payloads = 0 AND f.nth = 1 OR v_bytes + f.sum <= p_bytes;
    EXIT WHEN p.n = 0;
    INSERT INTO {schema}.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, lane, id, node,
      owner, error, data, meta, more_scores, more_data, more_meta)
    VALUES (p_token, p_number, j.perform_at, j.first_push, p_now, p.scores[1], p_shard, j.retry_count, j.recoveries, p_lane, j.id, p_node,
      p_owner, j.error, p.data[1], p.meta[1], p.scores[2:], p.data[2:], p.meta[2:]);
    ids := ids || j.id;
    v_jobs := v_jobs + 1; v_payloads := v_payloads + p.n; v_bytes := v_bytes + p.size;
    IF j.recoveries > 1 THEN
      UPDATE {schema}.shards s SET special = true WHERE s.id = p_shard;
    END IF;
    EXIT WHEN {schema}.leave_rest(p_shard, j.id, p.data);
    IF j.retry_count < 0 THEN
      fresh := fresh - 1;
    ELSE
      retries := retries - 1;
    END IF;
    EXIT WHEN j.recoveries > 1;
  END LOOP;
END {$};

-- Takes payloads out of a queued job, and the job with its last. Reports whether the job
-- stays.
CREATE FUNCTION {schema}.leave_rest(p_shard int, p_id text, p_data bytea[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  p         record;
  v_digests bytea[] := ARRAY(SELECT sha256(d) FROM unnest(p_data) d);
BEGIN
  DELETE FROM {schema}.payloads x WHERE x.shard = p_shard AND x.id = p_id AND x.digest = ANY (v_digests);
  DELETE FROM {schema}.payloads x WHERE (x.shard, x.id, x.digest) = (
    SELECT y.shard, y.id, y.digest FROM {schema}.payloads y WHERE y.shard = p_shard AND y.id = p_id LIMIT 1
  ) AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id AND j.data = ANY (p_data))
  RETURNING x.score, x.data, x.meta INTO p;
  IF FOUND THEN
    UPDATE {schema}.jobs j SET score = p.score, data = p.data, meta = p.meta WHERE j.shard = p_shard AND j.id = p_id;
    RETURN true;
  END IF;
  DELETE FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id AND j.data = ANY (p_data);
  RETURN NOT FOUND;
END {$};

