-- The turn.

-- Takes at most p_inbox rows of the inbox and carries out settlements, and merges what comes back. The counts are
-- changes; early is how far claims must go back for it, and rest whether the inbox holds more.
CREATE FUNCTION {schema}.settle_turn(p_shard int, p_merged xid8, p_inbox int, p_now bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_flags smallint[],
  p_rest smallint[], p_same_time boolean[], p_delays bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_bury_errors text[],
  x_place int[], x_position int[], x_disposition smallint[],
  OUT fresh int, OUT retries int, OUT settled int, OUT dead int, OUT processed int, OUT failed int,
  OUT skipped int[], OUT held int[], OUT early bigint, OUT rest boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_jobs {schema}.coming[];
  v_dead {schema}.coming[];
  v      record;
BEGIN
  fresh := 0; retries := 0; settled := 0; dead := 0; processed := 0; failed := 0; rest := false;
  IF p_merged IS NOT NULL THEN
    SELECT i.jobs, i.dead, i.early, i.rest INTO v_jobs, v_dead, early, rest FROM {schema}.take_inbox(p_shard, p_merged, p_inbox) i;
  END IF;
  IF p_ids IS NOT NULL THEN
    v := {schema}.settle_claimed(p_shard, p_now, p_ids, p_tokens, p_numbers, p_flags,
      p_rest, p_same_time, p_delays, p_retries, p_recoveries, p_errors, p_bury_errors, x_place, x_position, x_disposition);
    settled := coalesce(cardinality(v.done), 0); processed := v.processed; failed := v.failed;
    v_jobs := v_jobs || v.jobs; v_dead := v_dead || v.dead;
    IF cardinality(p_ids) > settled THEN
      SELECT array_agg(o.place ORDER BY o.place) FILTER (WHERE NOT o.there), array_agg(o.place ORDER BY o.place) FILTER (WHERE o.there)
      INTO skipped, held FROM (
        SELECT u.place, EXISTS (SELECT FROM {schema}.claimed c
          WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number) AS there
        FROM unnest(p_ids, p_tokens, p_numbers) WITH ORDINALITY u (id, token, number, place)
        WHERE v.done IS NULL OR u.place <> ALL (v.done)
      ) o;
    END IF;
  END IF;
  IF v_jobs IS NOT NULL THEN
    v := {schema}.merge(p_shard, v_jobs);
    fresh := v.fresh; retries := v.retries;
    early := least(early, v.earliest);
  END IF;
  IF v_dead IS NOT NULL THEN
    dead := {schema}.bury(p_shard, v_dead);
  END IF;
END {$};

-- Adds histograms bucket by bucket, of which one may be longer.
CREATE FUNCTION {schema}.sums(bigint[], bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS {$}
  SELECT ARRAY(SELECT coalesce(a, 0) + coalesce(b, 0) FROM unnest($1, $2) WITH ORDINALITY u (a, b, n) ORDER BY n)
{$};

-- Adds statistics to a shard's current minute and forgets those of 25 hours ago.
CREATE FUNCTION {schema}.add_minute(p_shard int, p_now bigint, p_processed bigint, p_failed bigint, p_wait bigint[], p_run bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  INSERT INTO {schema}.minutes AS m (shard, at, processed, failed, wait, run)
  VALUES (p_shard, p_now - p_now % 60000000, p_processed, p_failed, p_wait, p_run)
  ON CONFLICT (shard, at) DO UPDATE SET
    processed = m.processed + excluded.processed,
    failed = m.failed + excluded.failed,
    wait = {schema}.sums(m.wait, excluded.wait),
    run = {schema}.sums(m.run, excluded.run);
  DELETE FROM {schema}.minutes m WHERE m.shard = p_shard AND m.at < p_now - 90000000000;
END {$};

-- The reply to a repeated turn, which renews.
CREATE FUNCTION {schema}.repeat_turn(s {schema}.shards, p_now bigint, p_last bigint, p_ttl bigint, p_floor bigint, p_rescan bigint)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_expires bigint := {schema}.later(p_now, p_ttl);
  v_header  {schema}.reply;
  v_rest    boolean;
BEGIN
  PERFORM {schema}.fold(s.id, p_now, p_last, p_ttl, v_expires, p_floor, p_rescan);
  v_rest := {schema}.merge_inbox(s.id, s.merged, {schema}.inbox_limit(p_ttl));
  v_header := {schema}.header(0, s.paused, p_last, p_now, {schema}.remaining(v_expires, p_ttl, p_now),
    CASE WHEN s.paused THEN NULL WHEN v_rest THEN p_now
      ELSE {schema}.head(s.id, (SELECT l.floor FROM {schema}.leases l WHERE l.shard = s.id)) END,
    NULL, NULL, s.token, s.owner);
  v_header.kind := 4;
  RETURN NEXT v_header;
  RETURN QUERY SELECT r.* FROM {schema}.claimed c, {schema}.as_claim(1::smallint, c) r
  WHERE c.shard = s.id AND c.token = s.token AND c.number = p_last;
  RETURN QUERY SELECT r.* FROM {schema}.claimed c, {schema}.as_claim(2::smallint, c) r
  WHERE c.shard = s.id AND c.given_token = s.token AND c.given_number = p_last;
  RETURN QUERY SELECT * FROM {schema}.cancels(s.id);
END {$};

-- A turn that may find anything, as ports.Consumer says; the settlements are as in
-- settle_claimed, the statistics as in add_minute; b_ lists the claims to begin, NULL for
-- none. p_want is within 0 and core.MaxTurnJobs.
CREATE FUNCTION {schema}.whole_turn(p_queue text, p_index int, p_owner text, p_token bigint, p_number bigint, p_ttl bigint, p_now bigint,
  p_want int, p_per_job bigint, p_bytes bigint, p_node text, p_lane bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_flags smallint[],
  p_rest smallint[], p_same_time boolean[], p_delays bigint[], p_retries int[], p_recoveries int[], p_errors text[], p_bury_errors text[],
  x_place int[], x_position int[], x_disposition smallint[],
  p_processed bigint, p_failed bigint, p_wait bigint[], p_run bigint[],
  p_resent boolean, b_ids text[], b_tokens bigint[], b_numbers bigint[])
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  s         {schema}.shards;
  v_now     bigint;
  t         record;
  v_began   timestamptz;
  v_from    bigint;
  v_settled record;
  v_idle    int[];
  v_special boolean := false;
  v_alone   boolean := false;
  v_given   record;
  v_count   int := 0;
  c         record;
  v_head    bigint;
  v_floor   bigint;
BEGIN
  IF p_ttl < 5000000 THEN
    PERFORM {schema}.limit_waits(p_ttl);
  END IF;
  SELECT * INTO s FROM {schema}.shards x WHERE x.queue = p_queue COLLATE "C" AND x.index = p_index FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NEXT {schema}.header({schema}.no_shard(p_queue), false, 0, 0, 0, NULL, NULL, NULL, 0, '');
    RETURN;
  END IF;
  v_now := {schema}.clock(p_now);
  SELECT x.number AS last, x.ttl, x.expires, x.floor, x.rescan,
    EXISTS (SELECT FROM {schema}.inbox i WHERE i.shard = s.id AND i.tx >= {schema}.since(s.merged)) AS inbox
  INTO t FROM (SELECT s.id, s.token, s.last) y LEFT JOIN LATERAL (
    SELECT * FROM {schema}.turns x WHERE x.shard = y.id AND x.token = y.token AND x.number > y.last ORDER BY x.number DESC LIMIT 1
  ) x ON true;
  IF t.last IS NULL THEN
    t.last := s.last; t.ttl := s.ttl; t.expires := s.expires; t.floor := s.floor; t.rescan := s.rescan;
  END IF;
  IF NOT s.held OR s.owner <> p_owner OR s.token <> p_token OR p_number > t.last + 1 THEN
    RETURN NEXT {schema}.header(4, false, t.last, v_now, 0, NULL, NULL, NULL, s.token, s.owner);
    RETURN;
  ELSIF p_number < t.last THEN
    RETURN NEXT {schema}.header(5, false, t.last, v_now, 0, NULL, NULL, NULL, s.token, s.owner);
    RETURN;
  ELSIF p_number = t.last THEN
    RETURN QUERY SELECT * FROM {schema}.repeat_turn(s, v_now, t.last, p_ttl, t.floor, t.rescan);
    RETURN;
  END IF;

  v_settled := {schema}.settle_turn(s.id, CASE WHEN t.inbox THEN s.merged END, {schema}.inbox_limit(p_ttl), v_now, p_ids, p_tokens, p_numbers, p_flags,
    p_rest, p_same_time, p_delays, p_retries, p_recoveries, p_errors, p_bury_errors, x_place, x_position, x_disposition);
  v_floor := least(t.floor, v_settled.early, v_now - 1000000);
  IF b_ids IS NOT NULL THEN
    v_idle := {schema}.begin_claimed(s.id, b_ids, b_tokens, b_numbers);
  END IF;
  IF s.special THEN
    SELECT count(*) > 0, coalesce(bool_or(x.recoveries > 1), false) INTO v_special, v_alone FROM {schema}.claimed x
    WHERE x.shard = s.id AND (x.recoveries > 1 OR x.cancel_drop IS NOT NULL);
    UPDATE {schema}.shards x SET special = false WHERE x.id = s.id AND NOT v_special;
  END IF;
  SELECT NULL::text[] AS ids, NULL::boolean AS rest INTO v_given;
  IF s.orphans THEN
    v_given := {schema}.hand_over(s.id, s.token, p_number, false);
  END IF;

  -- Slow pushes may have come below the floor.
  v_from := v_floor;
  SELECT NULL::text[] AS ids, 0 AS fresh, 0 AS retries, false AS missed, NULL::bigint AS next INTO c;
  IF {schema}.overdue(t.rescan, v_now) THEN
    v_from := least(v_floor, {schema}.look_from(v_now));
    v_began := clock_timestamp();
  END IF;
  IF p_want > 0 AND NOT s.paused AND NOT v_alone THEN
    c := {schema}.claim_due(s.id, v_from, v_now, p_token, p_number, p_owner, p_node, p_lane, p_want, p_per_job, p_bytes, v_settled.rest);
    v_count := coalesce(cardinality(c.ids), 0);
    v_floor := CASE WHEN c.missed THEN least(v_floor, c.floor) ELSE c.floor END;
    v_from := v_floor;
    IF v_began IS NOT NULL THEN
      t.rescan := {schema}.next_rescan(v_now, v_began);
    END IF;
  END IF;

  IF s.paused OR v_alone THEN
    v_head := NULL;
  ELSIF c.missed OR v_settled.rest THEN
    v_head := v_now;
  ELSIF c.next IS NOT NULL THEN
    v_head := c.next;
  ELSE
    v_head := {schema}.head(s.id, v_from);
  END IF;

  IF p_ids IS NOT NULL OR b_ids IS NOT NULL OR p_wait IS NOT NULL OR v_count > 0 OR v_given.ids IS NOT NULL OR p_resent THEN
    t.last := p_number; t.ttl := p_ttl; t.expires := {schema}.later(v_now, p_ttl);
    INSERT INTO {schema}.turns (shard, token, number, ttl, expires, floor, rescan, fresh, retries, claimed, dead, processed, failed)
    VALUES (s.id, s.token, p_number, p_ttl, t.expires, v_floor, t.rescan, v_settled.fresh + c.fresh, v_settled.retries + c.retries,
      v_count - v_settled.settled, v_settled.dead, v_settled.processed, v_settled.failed);
    IF NOT v_now - s.renewed BETWEEN 0 AND p_ttl / 3 THEN
      PERFORM {schema}.fold(s.id, v_now, p_number, p_ttl, t.expires, v_floor, t.rescan);
    END IF;
    IF p_wait IS NOT NULL THEN
      PERFORM {schema}.add_minute(s.id, v_now, p_processed, p_failed, p_wait, p_run);
    END IF;
    IF NOT v_given.rest THEN
      UPDATE {schema}.shards SET orphans = false WHERE id = s.id;
    END IF;
  ELSIF t.inbox OR v_began IS NOT NULL AND t.rescan > v_now + 1000000 THEN
    PERFORM {schema}.tally(s.id, v_settled.fresh, v_settled.retries, v_settled.dead, 0, 0);
    PERFORM {schema}.fold(s.id, v_now, t.last, t.ttl, t.expires, v_floor, t.rescan);
  ELSE
    PERFORM set_config('synchronous_commit', 'off', true); -- nothing was written
  END IF;

  RETURN NEXT {schema}.header(0, s.paused, t.last, v_now, {schema}.remaining(t.expires, t.ttl, v_now), v_head,
    v_settled.skipped, v_settled.held, s.token, s.owner);
  IF v_idle IS NOT NULL THEN
    RETURN NEXT (7::smallint, '', 0, 0, 0, 0, 0, 0, '', 0, '', NULL, NULL, NULL, NULL, v_idle, NULL, 0, '')::{schema}.reply;
  END IF;
  IF v_count > 0 THEN
    RETURN QUERY SELECT r.* FROM {schema}.claimed x, {schema}.as_claim(1::smallint, x) r WHERE x.shard = s.id AND x.id = ANY (c.ids);
  END IF;
  IF v_given.ids IS NOT NULL THEN
    RETURN QUERY SELECT r.* FROM {schema}.claimed x, {schema}.as_claim(2::smallint, x) r WHERE x.shard = s.id AND x.id = ANY (v_given.ids);
  END IF;
  IF v_special THEN
    RETURN QUERY SELECT * FROM {schema}.cancels(s.id);
  END IF;
END {$};
