-- Leases, and what a shard's holder is told.

-- One row of a reply. kind 0 is its header, 1 a claim, 2 an orphan, 3 a cancel, whose
-- recoveries is 1 if the job is to be dropped, 4 the header for a repeated turn, 5 and 6 a
-- claim and an orphan that have begun, 7 what was not begun, by places in skipped. In a header retry_count is the status of
-- errors.go, recoveries whether the shard is paused, and token, number, perform_at,
-- first_push, since and owner are last turn, now, remaining, head (-1 for none), fencing token
-- and holder.
CREATE TYPE {schema}.reply AS (
  kind        smallint,
  id          text,
  token       bigint,
  number      bigint,
  perform_at  bigint,
  first_push  bigint,
  retry_count int,
  recoveries  int,
  error       text,
  score       double precision,
  data        bytea,
  meta        bytea,
  more_scores double precision[],
  more_data   bytea[],
  more_meta   bytea[],
  skipped     int[],
  held        int[],
  since       bigint,
  owner       text
);

CREATE FUNCTION {schema}.header(p_status int, p_paused boolean, p_last bigint, p_now bigint, p_remaining bigint, p_head bigint,
  p_skipped int[], p_held int[], p_token bigint, p_owner text)
RETURNS {schema}.reply LANGUAGE sql IMMUTABLE AS {$}
  SELECT ROW(0, '', p_last, p_now, p_remaining, coalesce(p_head, -1), p_status, p_paused::int, '', 0, '', NULL, NULL, NULL, NULL,
    p_skipped, p_held, p_token, p_owner)::{schema}.reply
{$};

-- A claimed row as a reply.
CREATE FUNCTION {schema}.as_claim(p_kind smallint, c {schema}.claimed) RETURNS {schema}.reply LANGUAGE sql IMMUTABLE AS {$}
  SELECT ROW(p_kind + CASE WHEN c.begun THEN 4 ELSE 0 END, c.id, c.token, c.number, c.perform_at, c.first_push, c.retry_count, c.recoveries, c.error, c.score,
    c.data, c.meta, c.more_scores, c.more_data, c.more_meta, NULL, NULL, 0, '')::{schema}.reply
{$};

-- The cancelled claims of a shard, as replies.
CREATE FUNCTION {schema}.cancels(p_shard int) RETURNS SETOF {schema}.reply LANGUAGE sql STABLE AS {$}
  SELECT (3::smallint, c.id, c.token, c.number, 0::bigint, 0::bigint, 0, c.cancel_drop::int, '', 0::double precision, ''::bytea,
    NULL::bytea, NULL::double precision[], NULL::bytea[], NULL::bytea[], NULL::int[], NULL::int[], 0::bigint, '')::{schema}.reply
  FROM {schema}.claimed c
  WHERE c.shard = p_shard AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL) AND c.cancel_drop IS NOT NULL
  ORDER BY c.id
{$};

-- Hands over the claims of earlier leases that nobody holds locked, those that the lease has
-- not been given yet, or all if p_all; p_number is the turn that hands them over, 0 an
-- acquire. Gives their ids, and whether there are others.
CREATE FUNCTION {schema}.hand_over(p_shard int, p_token bigint, p_number bigint, p_all boolean, OUT ids text[], OUT rest boolean)
LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  SELECT array_agg(o.id) INTO ids FROM (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = p_shard AND c.token <> p_token AND (p_all OR c.given_token IS DISTINCT FROM p_token)
    ORDER BY c.id FOR UPDATE SKIP LOCKED
  ) o;
  UPDATE {schema}.claimed c SET given_token = p_token, given_number = p_number
  WHERE c.shard = p_shard AND c.id = ANY (ids) AND c.given_token IS DISTINCT FROM p_token;
  rest := EXISTS (SELECT FROM {schema}.claimed c
    WHERE c.shard = p_shard AND c.token <> p_token AND c.given_token IS DISTINCT FROM p_token);
END {$};

-- Gives a shard to an owner, as ports.Consumer says.
CREATE FUNCTION {schema}.acquire(p_queue text, p_index int, p_shards int, p_generation bigint, p_owner text, p_attempt bigint,
  p_ttl bigint, p_now bigint)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_shard  int := {schema}.shard_number(p_queue, p_index);
  v_now    bigint;
  v_left   bigint;
  v_same   boolean;
  v_status smallint;
  l        {schema}.leases;
  v_given  record;
BEGIN
  SELECT CASE WHEN q.shards <> p_shards OR q.generation <> p_generation THEN 3 WHEN v_shard IS NULL THEN 2 END INTO v_status
  FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C";
  IF NOT FOUND THEN
    v_status := 1;
  END IF;
  IF v_status IS NOT NULL THEN
    RETURN NEXT {schema}.header(v_status, false, 0, 0, 0, NULL, NULL, NULL, 0, '');
    RETURN;
  END IF;
  PERFORM {schema}.limit_waits(p_ttl);
  PERFORM FROM {schema}.shards s WHERE s.id = v_shard FOR UPDATE;
  v_now := {schema}.clock(p_now);
  SELECT * INTO l FROM {schema}.leases WHERE shard = v_shard;
  v_left := {schema}.remaining(l.expires, l.ttl, v_now);
  v_same := l.owner = p_owner;

  IF v_same AND (p_attempt < l.attempt OR p_attempt = l.attempt AND NOT l.held) THEN
    RETURN NEXT {schema}.header(6, false, 0, v_now, 0, NULL, NULL, NULL, l.token, l.owner);
    RETURN;
  END IF;
  IF NOT v_same AND l.held AND v_left > 0 THEN
    IF l.expires > v_now + l.ttl THEN -- the clock stepped back
      PERFORM {schema}.fold(v_shard, v_now, l.last, l.ttl, v_now + v_left, l.floor, l.rescan);
    END IF;
    RETURN NEXT {schema}.header(7, false, 0, v_now, v_left, NULL, NULL, NULL, l.token, l.owner);
    RETURN;
  END IF;
  IF NOT (v_same AND p_attempt = l.attempt AND v_left > 0) THEN
    l.token := greatest(l.token + 1, v_now);
    l.last := 0;
  END IF;
  PERFORM {schema}.fold(v_shard, v_now, l.last, p_ttl, {schema}.later(v_now, p_ttl), l.floor, l.rescan);
  SELECT * INTO v_given FROM {schema}.hand_over(v_shard, l.token, 0, true);
  UPDATE {schema}.shards SET held = true, owner = p_owner, attempt = p_attempt, token = l.token, orphans = v_given.rest
  WHERE id = v_shard;
  RETURN NEXT {schema}.header(0, false, l.last, v_now, {schema}.remaining({schema}.later(v_now, p_ttl), p_ttl, v_now), NULL, NULL, NULL, l.token, p_owner);
  RETURN QUERY SELECT ({schema}.as_claim(1::smallint, c)).* FROM {schema}.claimed c WHERE c.shard = v_shard AND c.id = ANY (v_given.ids);
  RETURN QUERY SELECT * FROM {schema}.cancels(v_shard);
END {$};

-- How long a lease lasts; never more than its TTL, since then the clock has stepped back.
CREATE FUNCTION {schema}.remaining(p_expires bigint, p_ttl bigint, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS {$}
  SELECT greatest(0, least(p_expires, {schema}.later(p_now, p_ttl)) - p_now)
{$};

-- Bounds how long the transaction waits for a lock: 500 ms, or a tenth of the TTL.
CREATE FUNCTION {schema}.limit_waits(p_ttl bigint) RETURNS void LANGUAGE sql VOLATILE AS {$}
  SELECT set_config('lock_timeout', greatest(1, least(500, p_ttl / 10000))::text, true)
{$};

-- Renews a lease, or ends it if p_ttl is NULL and tells those who listen on a channel, for
-- NULL nobody. A shard that makes no turns has only this to find pushes that came below the
-- floor since they were slow to commit.
CREATE FUNCTION {schema}.renew(p_queue text, p_index int, p_owner text, p_token bigint, p_ttl bigint, p_now bigint, p_channel text,
  OUT status smallint, OUT now bigint, OUT remaining bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_shard int := {schema}.shard_number(p_queue, p_index);
  v_began timestamptz;
  v_early bigint;
  l       {schema}.leases;
BEGIN
  PERFORM {schema}.limit_waits(coalesce(p_ttl, 5000000));
  PERFORM FROM {schema}.shards s WHERE s.id = v_shard FOR UPDATE;
  IF NOT FOUND THEN
    status := {schema}.no_shard(p_queue);
    RETURN;
  END IF;
  now := {schema}.clock(p_now);
  SELECT * INTO l FROM {schema}.leases WHERE shard = v_shard;
  IF NOT l.held OR l.owner <> p_owner OR l.token <> p_token THEN
    status := 4;
    RETURN;
  END IF;
  status := 0;
  IF p_ttl IS NULL THEN
    PERFORM {schema}.fold(v_shard, now, l.last, l.ttl, l.expires, l.floor, l.rescan);
    UPDATE {schema}.shards SET held = false WHERE id = v_shard;
    PERFORM pg_notify(p_channel, p_queue || '/' || p_index) WHERE p_channel IS NOT NULL;
  ELSE
    IF {schema}.overdue(l.rescan, now) THEN
      v_began := clock_timestamp();
      SELECT j.perform_at INTO v_early FROM {schema}.jobs j
      WHERE j.shard = v_shard AND j.perform_at >= {schema}.look_from(now) AND j.perform_at < l.floor
        AND (SELECT c.shard FROM {schema}.claimed c WHERE c.shard = j.shard AND c.id = j.id) IS NULL
      ORDER BY j.perform_at, j.id LIMIT 1;
      l.floor := least(l.floor, v_early);
      l.rescan := {schema}.next_rescan(now, v_began);
    END IF;
    PERFORM {schema}.fold(v_shard, now, l.last, p_ttl, {schema}.later(now, p_ttl), l.floor, l.rescan);
    remaining := {schema}.remaining({schema}.later(now, p_ttl), p_ttl, now);
  END IF;
END {$};

-- When shards could next give a job, in the order asked: now if the inbox holds more than a
-- look merges.
CREATE FUNCTION {schema}.heads(p_queues text[], p_indexes int[], p_now bigint)
RETURNS TABLE (status smallint, now bigint, head bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
#variable_conflict use_column
BEGIN
  PERFORM {schema}.look(q.queue, NULL) FROM (SELECT DISTINCT queue FROM unnest(p_queues) u (queue) ORDER BY queue) q;
  RETURN QUERY
  SELECT CASE WHEN l.shard IS NULL THEN {schema}.no_shard(a.queue) ELSE 0 END::smallint, {schema}.clock(p_now),
    CASE WHEN s.paused THEN NULL
      WHEN EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx >= {schema}.since(s.merged)) THEN {schema}.clock(p_now)
      ELSE {schema}.head(l.shard, l.floor) END
  FROM unnest(p_queues, p_indexes) WITH ORDINALITY a (queue, index, ord)
  LEFT JOIN {schema}.leases l ON l.shard = {schema}.shard_number(a.queue, a.index)
  LEFT JOIN {schema}.shards s ON s.id = l.shard
  ORDER BY a.ord;
END {$};
