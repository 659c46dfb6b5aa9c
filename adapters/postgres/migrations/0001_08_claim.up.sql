-- Claiming.

-- Chooses due jobs to claim together, of those from p_from on: the first p_want, as long as
-- they have one payload and no recoveries and p_bytes lasts. at are their places, used their
-- bytes, failed how many are retries, first and last the ends of their PerformAt. passed is
-- the earliest of the claimed ids passed over. next is the first job left, odd whether it has
-- more payloads or recoveries, each whether claim_each might take it.
CREATE FUNCTION {schema}.choose(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint,
  OUT at tid[], OUT first bigint, OUT last bigint, OUT used bigint, OUT failed int,
  OUT passed bigint, OUT next bigint, OUT odd boolean, OUT each boolean)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  v_times   bigint[];
  v_retries boolean[];
  v_plain   boolean;
  v_taken   int;
BEGIN
  SELECT array_agg(d.at), array_agg(d.perform_at), array_agg(d.retry), sum(d.size), bool_and(d.plain)
  INTO at, v_times, v_retries, used, v_plain
  FROM (
    SELECT j.ctid AS at, j.perform_at, j.retry_count >= 0 AS retry, octet_length(j.data) AS size, NOT j.more AND j.recoveries = 0
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL AS plain
    FROM {schema}.jobs j
    WHERE j.shard = p_shard AND j.perform_at >= p_from AND j.perform_at <= p_now
    ORDER BY j.perform_at, j.id LIMIT p_want + 1
  ) d;
  IF used > p_bytes OR NOT v_plain THEN
    SELECT * INTO at, first, last, used, failed, passed, next, odd, each
    FROM {schema}.choose_some(p_shard, p_from, p_now, p_want, p_bytes);
    RETURN;
  END IF;
  each := false; odd := false;
  v_taken := least(p_want, cardinality(at));
  first := v_times[1];
  last := v_times[v_taken];
  next := v_times[p_want + 1];
  failed := coalesce(cardinality(array_positions(v_retries[:v_taken], true)), 0);
  IF next IS NOT NULL THEN
    at := at[:p_want];
  END IF;
END {$};

-- choose where not all that is due may be taken together.
CREATE FUNCTION {schema}.choose_some(p_shard int, p_from bigint, p_now bigint, p_want int, p_bytes bigint,
  OUT at tid[], OUT first bigint, OUT last bigint, OUT used bigint, OUT failed int,
  OUT passed bigint, OUT next bigint, OUT odd boolean, OUT each boolean)
LANGUAGE plpgsql STABLE AS {$}
DECLARE
  v_limit int := p_want + 1;
  v_seen  int;
BEGIN
  LOOP
    SELECT count(*), min(f.perform_at) FILTER (WHERE f.busy),
      array_agg(f.at) FILTER (WHERE f.take), min(f.perform_at) FILTER (WHERE f.take), max(f.perform_at) FILTER (WHERE f.take),
      max(f.sum) FILTER (WHERE f.take), count(*) FILTER (WHERE f.take AND f.retry_count >= 0),
      min(f.perform_at) FILTER (WHERE f.left), (array_agg(f.odd ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1],
      (array_agg(f.odd AND f.nth <= p_want ORDER BY f.perform_at, f.id) FILTER (WHERE f.left))[1]
    INTO v_seen, passed, at, first, last, used, failed, next, odd, each
    FROM (
      SELECT o.*, NOT o.busy AND o.fits AS take, NOT o.busy AND NOT o.fits AS left
      FROM (SELECT w.*, w.nth <= p_want AND (w.nth = 1 OR w.sum <= p_bytes) AND w.odds = 0 AS fits FROM (
        SELECT d.*, sum(CASE WHEN d.busy THEN 0 ELSE 1 END) OVER w AS nth, sum(CASE WHEN d.busy THEN 0 ELSE d.size END) OVER w AS sum,
          sum(CASE WHEN d.odd AND NOT d.busy THEN 1 ELSE 0 END) OVER w AS odds
        FROM (
          SELECT j.ctid AS at, j.perform_at, j.id, j.retry_count, j.more OR j.recoveries > 0 AS odd, octet_length(j.data) AS size,
            (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NOT NULL AS busy
          FROM {schema}.jobs j
          WHERE j.shard = p_shard AND j.perform_at >= p_from AND j.perform_at <= p_now
          ORDER BY j.perform_at, j.id LIMIT v_limit
        ) d WINDOW w AS (ORDER BY d.perform_at, d.id ROWS UNBOUNDED PRECEDING)
      ) w) o
    ) f;
    EXIT WHEN next IS NOT NULL OR v_seen < v_limit;
    v_limit := 2 * v_limit + 256; -- some were claimed
  END LOOP;
END {$};

-- Claims due jobs one by one: those with several payloads, or with recoveries. It starts
-- with so many jobs, payloads and bytes claimed in this turn and ends at the budget, in
-- front of a job that must run alone, or at one that a push holds locked; that is a miss.
CREATE FUNCTION {schema}.claim_each(p_shard int, p_from bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_lane bigint, p_want int, p_per_job bigint, p_bytes bigint, p_jobs int, p_used bigint,
  OUT ids text[], OUT fresh int, OUT retries int, OUT missed boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000;
  v_jobs     int := p_jobs;
  v_payloads int := p_jobs;
  v_bytes    bigint := p_used;
  j          record;
  p          record;
BEGIN
  fresh := 0; retries := 0; missed := false;
  WHILE v_jobs < p_want AND v_payloads < c_payloads LOOP
    SELECT q.ctid AS at, q.* INTO j FROM {schema}.jobs q
    WHERE q.shard = p_shard AND q.perform_at >= p_from AND q.perform_at <= p_now
      AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = q.shard AND c.id = q.id) IS NULL
    ORDER BY q.perform_at, q.id LIMIT 1;
    EXIT WHEN NOT FOUND OR j.recoveries > 0 AND EXISTS (SELECT FROM {schema}.claimed c WHERE c.shard = p_shard);
    PERFORM FROM {schema}.jobs q WHERE q.ctid = j.at FOR UPDATE SKIP LOCKED;
    missed := NOT FOUND;
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
    IF j.recoveries > 0 THEN
      UPDATE {schema}.shards s SET special = true WHERE s.id = p_shard;
    END IF;
    EXIT WHEN {schema}.leave_rest(p_shard, j.id, p.data);
    IF j.retry_count < 0 THEN
      fresh := fresh - 1;
    ELSE
      retries := retries - 1;
    END IF;
    EXIT WHEN j.recoveries > 0;
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

