-- Merging by RULES 2: what comes into the queue and the morgue.

-- One payload on its way in. kind is 'p' for a push, 'r' for a job put back, 'v' for one
-- that leaves the morgue, 'd' for one that enters it, whose perform_at is its ChangedAt.
CREATE TYPE {schema}.coming AS (
  kind        "char",
  rule        smallint,
  rule_limit  bigint,
  perform_at  bigint,
  first_push  bigint,
  score       double precision,
  retry_count int,
  recoveries  int,
  id          text COLLATE "C",
  error       text,
  data        bytea,
  meta        bytea
);

-- now by the server's clock, unless the caller has another.
CREATE FUNCTION {schema}.clock(p_now bigint) RETURNS bigint LANGUAGE sql VOLATILE AS {$}
  SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
{$};

-- An instant so much later, within the range of an Instant.
CREATE FUNCTION {schema}.later(p_at bigint, p_by bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE WHEN p_by >= 9007199254740992 - p_at THEN 9007199254740992 ELSE greatest(0, p_at + p_by) END
{$};

-- PerformAt of a fresh queued job that a push has met.
CREATE FUNCTION {schema}.pushed_at(p_rule smallint, p_limit bigint, p_queued bigint, p_coming bigint, p_first bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT CASE p_rule
    WHEN 1 THEN least(p_queued, p_coming)
    WHEN 2 THEN greatest(p_queued, least(p_coming, {schema}.later(p_first, p_limit)))
    ELSE p_queued
  END
{$};

-- Gives queued jobs payloads, at most one for each (shard, id, data). The caller holds the
-- jobs' locks and has set their more.
CREATE FUNCTION {schema}.add_payloads(p_shards int[], p_ids text[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
BEGIN
  UPDATE {schema}.jobs j SET score = c.score, meta = c.meta
  FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta)
  WHERE j.shard = c.shard AND j.id = c.id AND j.data = c.data AND c.score < j.score;

  INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
  SELECT c.shard, c.id, sha256(c.data), c.score, c.data, c.meta
  FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta)
  JOIN {schema}.jobs j ON j.shard = c.shard AND j.id = c.id AND j.data <> c.data
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score;
END {$};

-- Merges what comes into a shard's queue, for each id in the order given. Gives the change
-- of the counts and the smallest PerformAt of the jobs it touched. The first of each id
-- goes in by one statement in order of id; merge_rest then locks nothing new.
CREATE FUNCTION {schema}.merge(p_shard int, p_coming {schema}.coming[], OUT fresh int, OUT retries int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_ids  int;
  v_met  text[];
  v_more boolean;
  v_rest record;
BEGIN
  WITH first AS (
    SELECT * FROM (
      SELECT c.*, row_number() OVER w AS nth, count(*) OVER (PARTITION BY id) AS n
      FROM unnest(p_coming) WITH ORDINALITY c (kind, rule, rule_limit, perform_at, first_push, score, retry_count,
        recoveries, id, error, data, meta, ord)
      WINDOW w AS (PARTITION BY id ORDER BY ord)
    ) c WHERE nth = 1
  ), put AS (
    INSERT INTO {schema}.jobs AS j (shard, id, perform_at, first_push, retry_count, recoveries, more, score, data, meta, error)
    SELECT p_shard, id, perform_at, first_push, retry_count, recoveries, n > 1, score, data, meta, error
    FROM first ORDER BY id
    ON CONFLICT (shard, id) DO UPDATE SET
      prior = j.retry_count,
      first_push = least(j.first_push, excluded.first_push),
      recoveries = greatest(j.recoveries, excluded.recoveries),
      more = j.more OR excluded.more OR j.data <> excluded.data,
      score = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.score ELSE j.score END,
      meta = CASE WHEN excluded.score < j.score AND excluded.data = j.data THEN excluded.meta ELSE j.meta END
    RETURNING id, perform_at, retry_count, prior, more
  )
  SELECT count(*), count(*) FILTER (WHERE prior IS NULL AND retry_count < 0),
    count(*) FILTER (WHERE prior IS NULL AND retry_count >= 0), min(perform_at),
    array_agg(id) FILTER (WHERE prior IS NOT NULL), coalesce(bool_or(more), false)
  INTO v_ids, fresh, retries, earliest, v_met, v_more FROM put;

  IF v_met IS NOT NULL OR v_more THEN
    SELECT * INTO v_rest FROM {schema}.merge_rest(p_shard, p_coming, coalesce(v_met, '{}'));
    fresh := fresh + v_rest.fresh;
    retries := retries - v_rest.fresh;
    earliest := v_rest.earliest;
  END IF;
END {$};

-- What is left to merge after the first of each id was: all that met a queued job, and
-- later ones. Gives how many jobs more are fresh, so many fewer are retries.
CREATE FUNCTION {schema}.merge_rest(p_shard int, p_coming {schema}.coming[], p_met text[], OUT fresh int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_round int := 0;
  v_found int;
  v_turned int;
BEGIN
  fresh := 0;
  UPDATE {schema}.jobs j SET first_push = least(j.first_push, c.first_push), recoveries = greatest(j.recoveries, c.recoveries)
  FROM (SELECT id, min(first_push) AS first_push, max(recoveries) AS recoveries FROM unnest(p_coming) GROUP BY id) c
  WHERE j.shard = p_shard AND j.id = c.id AND (c.first_push < j.first_push OR c.recoveries > j.recoveries);

  -- A step is an arrival that may change a state. Payloads that came together are one;
  -- pushes that keep the time are none once something is queued.
  LOOP
    v_round := v_round + 1;
    WITH arrivals AS (
      SELECT c.*, lag(ROW(kind, perform_at, retry_count, error)) OVER w AS before, row_number() OVER w AS nth
      FROM unnest(p_coming) WITH ORDINALITY c (kind, rule, rule_limit, perform_at, first_push, score, retry_count,
        recoveries, id, error, data, meta, ord)
      WINDOW w AS (PARTITION BY id ORDER BY ord)
    ), steps AS (
      SELECT a.*, row_number() OVER (PARTITION BY id ORDER BY ord) AS round FROM arrivals a
      WHERE nth = 1 OR NOT (kind = 'p' AND rule = 0)
        AND (kind = 'p' OR ROW(kind, perform_at, retry_count, error) IS DISTINCT FROM before)
    ), step AS MATERIALIZED (
      SELECT * FROM steps WHERE round = v_round
    ), done AS (
      UPDATE {schema}.jobs j SET
        prior = j.retry_count,
        perform_at = CASE
          WHEN s.kind <> 'p' THEN s.perform_at
          WHEN j.retry_count < 0 THEN {schema}.pushed_at(s.rule, s.rule_limit, j.perform_at, s.perform_at, j.first_push)
          ELSE j.perform_at END,
        retry_count = CASE WHEN s.kind = 'p' THEN j.retry_count ELSE s.retry_count END,
        error = CASE WHEN s.kind = 'p' THEN j.error ELSE s.error END
      FROM step s
      WHERE j.shard = p_shard AND j.id = s.id AND (v_round > 1 OR s.id = ANY (p_met)) AND NOT (s.kind = 'p' AND s.rule = 0)
      RETURNING CASE WHEN j.prior < 0 THEN 0 ELSE 1 END - CASE WHEN j.retry_count < 0 THEN 0 ELSE 1 END AS turned
    )
    SELECT (SELECT count(*) FROM step), (SELECT coalesce(sum(turned), 0) FROM done) INTO v_found, v_turned;
    fresh := fresh + v_turned;
    EXIT WHEN v_found = 0;
  END LOOP;

  PERFORM {schema}.add_payloads(array_agg(p_shard), array_agg(id), array_agg(score), array_agg(data), array_agg(meta))
  FROM (
    SELECT DISTINCT ON (id, data) id, score, data, meta
    FROM unnest(p_coming) WITH ORDINALITY c (kind, rule, rule_limit, perform_at, first_push, score, retry_count,
      recoveries, id, error, data, meta, ord)
    ORDER BY id, data, score, ord
  ) c;
  SELECT min(j.perform_at) INTO earliest FROM {schema}.jobs j
  WHERE j.shard = p_shard AND j.id = ANY (SELECT id FROM unnest(p_coming));
END {$};

-- Unites dead letters with the morgue: payloads merge, the newest error and time stay.
-- Gives how many ids more it holds. The caller holds the shard's lock.
CREATE FUNCTION {schema}.bury(p_shard int, p_coming {schema}.coming[]) RETURNS int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_before int;
  v_ids    int;
BEGIN
  SELECT count(*) INTO v_before FROM {schema}.dead d
  WHERE d.shard = p_shard AND d.id = ANY (SELECT DISTINCT id FROM unnest(p_coming));

  INSERT INTO {schema}.dead (shard, id, changed_at, error)
  SELECT DISTINCT ON (id) p_shard, id, perform_at, error
  FROM unnest(p_coming) WITH ORDINALITY c (kind, rule, rule_limit, perform_at, first_push, score, retry_count,
    recoveries, id, error, data, meta, ord)
  ORDER BY id, ord DESC
  ON CONFLICT (shard, id) DO UPDATE SET changed_at = excluded.changed_at, error = excluded.error;
  GET DIAGNOSTICS v_ids = ROW_COUNT;

  INSERT INTO {schema}.dead_payloads AS p (shard, id, digest, score, data, meta)
  SELECT DISTINCT ON (id, data) p_shard, id, sha256(data), score, data, meta
  FROM unnest(p_coming) WITH ORDINALITY c (kind, rule, rule_limit, perform_at, first_push, score, retry_count,
    recoveries, id, error, data, meta, ord)
  ORDER BY id, data, score, ord
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score;
  RETURN v_ids - v_before;
END {$};

-- The payloads of a queued job in order, at most so many.
CREATE FUNCTION {schema}.payloads_of(p_shard int, p_id text, p_limit int)
RETURNS TABLE (score double precision, data bytea, meta bytea) LANGUAGE sql STABLE AS {$}
  SELECT p.score, p.data, p.meta FROM (
    SELECT j.score, j.data, j.meta FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id
    UNION ALL
    SELECT x.score, x.data, x.meta FROM {schema}.payloads x WHERE x.shard = p_shard AND x.id = p_id
  ) p ORDER BY p.score, p.data LIMIT p_limit
{$};

-- Removes queued jobs, and gives all their payloads as they would be merged or buried. It
-- waits for pushes, in order of id. The caller holds the shard's lock.
CREATE FUNCTION {schema}.take_jobs(p_shard int, p_ids text[]) RETURNS SETOF {schema}.coming LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_ids text[];
BEGIN
  SELECT array_agg(id) INTO v_ids FROM (
    SELECT j.id FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = ANY (p_ids) ORDER BY j.id FOR UPDATE
  ) locked;
  RETURN QUERY
  WITH gone AS (
    DELETE FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = ANY (v_ids) RETURNING j.*
  ), rest AS (
    DELETE FROM {schema}.payloads p WHERE p.shard = p_shard AND p.id = ANY (v_ids) RETURNING p.*
  )
  SELECT 'd'::"char", 0::smallint, 0::bigint, g.perform_at, g.first_push, g.score, g.retry_count, g.recoveries, g.id::text,
    g.error, g.data, g.meta FROM gone g
  UNION ALL
  SELECT 'd'::"char", 0::smallint, 0::bigint, g.perform_at, g.first_push, r.score, g.retry_count, g.recoveries, g.id::text,
    g.error, r.data, r.meta FROM gone g JOIN rest r ON r.id = g.id;
END {$};
