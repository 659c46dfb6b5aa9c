-- Carries out any turn (ports.Consumer.Turn). p_settle arguments are the receipts of settlements,
-- NULL for none, and p_settlements the settlements themselves, a JSON array of objects of the type
-- settlement, NULL if all jobs are done whole and processed; p_part arguments are payloads to end, as in end_parts (p_part_marks is NULL if none raises a mark), and p_begin
-- arguments claims to mark as begun, NULL for none. p_keep arguments are what is kept of records, NULL
-- for no limit, and all NULL if no record is kept.
-- p_want is within 0 and core.MaxTurnJobs. Returns the header and, if its status is ok or
-- repeated, the rest of the reply. A further header has places of the request, from 1: skipped,
-- settlements whose job is not claimed; deferred, those whose job a caller's transaction has
-- locked; skipped_parts; and not_begun, claims that could not be marked as begun. If p_resent, the
-- reply lacks what it claimed and handed over, which turn_claims returns.
CREATE FUNCTION {schema}.turn(p_queue text, p_index int, p_owner text, p_token bigint, p_number bigint, p_ttl bigint, p_now bigint,
  p_want int, p_per_job bigint, p_bytes bigint, p_node text,
  p_settle_ids text[] DEFAULT NULL, p_settle_tokens bigint[] DEFAULT NULL, p_settle_numbers bigint[] DEFAULT NULL,
  p_settlements json DEFAULT NULL,
  p_resent boolean DEFAULT false,
  p_begin_ids text[] DEFAULT NULL, p_begin_tokens bigint[] DEFAULT NULL, p_begin_numbers bigint[] DEFAULT NULL,
  p_part_ids text[] DEFAULT NULL, p_part_tokens bigint[] DEFAULT NULL, p_part_numbers bigint[] DEFAULT NULL,
  p_part_positions int[] DEFAULT NULL, p_part_retry_counts int[] DEFAULT NULL, p_part_recoveries int[] DEFAULT NULL, p_part_marks float8[] DEFAULT NULL,
  p_keep_age bigint DEFAULT NULL, p_keep_count bigint DEFAULT NULL, p_keep_bytes bigint DEFAULT NULL)
RETURNS SETOF {schema}.reply LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_short_ttl CONSTANT bigint := 5000000; -- below it, a tenth of the TTL is less than lock_timeout
  c_slow_push CONSTANT bigint := 1000000; -- rescans look for pushes that take longer to commit
  c_few_dead  CONSTANT bigint := 10000; -- passed in some ms
  c_never     CONSTANT bigint := 9223372036854775807;
  v_shard       {schema}.shards;
  v_now         bigint;
  v_log         record; -- the newest row of turn_log, or the same of the shard's row
  v_rescan_at   timestamptz;
  v_from        bigint;
  v_settled     record;
  v_kept        record; -- what becomes of the number of records and of the bytes of their results
  v_pruned      record;
  v_parts       record;
  v_not_begun   int[];
  v_exceptional boolean := false;
  v_alone       boolean := false;
  v_handed      record;
  v_count       int := 0;
  v_claimed     record;
  v_head        bigint;
  v_floor       bigint;
  v_reply       {schema}.reply;
  v_fold        boolean; -- whether the turn is to fold, if it does something
BEGIN
  IF p_ttl < c_short_ttl THEN
    PERFORM {schema}.limit_lock_waits(p_ttl);
  END IF;
  SELECT * INTO v_shard FROM {schema}.shards s WHERE s.queue = p_queue COLLATE "C" AND s.index = p_index FOR UPDATE;
  IF NOT FOUND THEN
    v_reply.header := {schema}.reply_header({schema}.missing_shard(p_queue));
    RETURN NEXT v_reply;
    RETURN;
  END IF;
  v_now := {schema}.clock(p_now);
  SELECT t.number AS last, t.ttl, t.expires, t.floor, t.rescan,
    EXISTS (SELECT FROM {schema}.inbox i
      WHERE i.shard = v_shard.id AND (i.tx, i.seq) >= ({schema}.scan_from(v_shard.inbox_from), v_shard.inbox_seq))
    OR EXISTS (SELECT FROM unnest(v_shard.inbox_open) o (tx), LATERAL (SELECT FROM {schema}.inbox i WHERE i.shard = v_shard.id AND i.tx = o.tx LIMIT 1) i) AS inbox
  INTO v_log FROM (SELECT v_shard.id, v_shard.token, v_shard.last) s LEFT JOIN LATERAL (
    SELECT * FROM {schema}.turn_log t WHERE t.shard = s.id AND t.token = s.token AND t.number > s.last ORDER BY t.number DESC LIMIT 1
  ) t ON true;
  IF v_log.last IS NULL THEN
    v_log.last := v_shard.last; v_log.ttl := v_shard.ttl; v_log.expires := v_shard.expires;
    v_log.floor := v_shard.floor; v_log.rescan := v_shard.rescan;
  END IF;
  IF NOT v_shard.held OR v_shard.owner <> p_owner OR v_shard.token <> p_token OR p_number > v_log.last + 1 THEN
    v_reply.header := {schema}.reply_header('lease_lost', p_now => v_now, p_last => v_log.last,
      p_lease_token => v_shard.token, p_lease_owner => v_shard.owner);
    RETURN NEXT v_reply;
    RETURN;
  ELSIF p_number < v_log.last THEN
    v_reply.header := {schema}.reply_header('stale_turn', p_now => v_now, p_last => v_log.last,
      p_lease_token => v_shard.token, p_lease_owner => v_shard.owner);
    RETURN NEXT v_reply;
    RETURN;
  ELSIF p_number = v_log.last THEN
    RETURN QUERY SELECT * FROM {schema}.repeat_turn(v_shard, v_now, v_log.last, p_ttl, v_log.floor, v_log.rescan, p_resent);
    RETURN;
  END IF;

  v_settled := {schema}.settle_and_merge(v_shard.id, v_shard.parked, v_log.inbox, v_now,
    p_settle_ids, p_settle_tokens, p_settle_numbers,
    CASE WHEN p_settlements IS NOT NULL THEN
      ARRAY(SELECT s FROM json_populate_recordset(NULL::{schema}.settlement, p_settlements) s) END);
  v_floor := least(v_log.floor, v_settled.early, v_now - c_slow_push);
  SELECT NULL::int[] AS skipped, 0 AS past INTO v_parts;
  IF p_part_ids IS NOT NULL THEN
    v_parts := {schema}.end_parts(v_shard.id, v_now, p_part_ids, p_part_tokens, p_part_numbers, p_part_positions,
      p_part_retry_counts, p_part_recoveries, p_part_marks);
    v_settled.past := v_settled.past + v_parts.past;
  END IF;
  IF p_begin_ids IS NOT NULL THEN
    v_not_begun := {schema}.begin_claimed(v_shard.id, p_begin_ids, p_begin_tokens, p_begin_numbers);
  END IF;
  IF v_shard.exceptional THEN
    -- The condition is that of the index claimed_exceptional, word for word: from 2, which is
    -- core.AloneRecoveries, on.
    SELECT count(*) > 0, coalesce(bool_or(c.recoveries > 1), false) INTO v_exceptional, v_alone FROM {schema}.claimed c
    WHERE c.shard = v_shard.id AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL);
    UPDATE {schema}.shards s SET exceptional = false WHERE s.id = v_shard.id AND NOT v_exceptional;
  END IF;
  SELECT NULL::text[] AS ids, 0 AS payloads, 0::bigint AS bytes, false AS more INTO v_handed;
  IF v_shard.orphans THEN
    v_handed := {schema}.hand_over(v_shard.id, v_shard.token, p_number, p_bytes);
  END IF;

  -- Slow pushes may have come below the floor. Beside many dead rows a look takes long, so only
  -- turns that fold look, and renewals.
  v_from := v_floor;
  v_fold := NOT v_now - v_shard.renewed BETWEEN 0 AND p_ttl / 3;
  SELECT NULL::text[] AS ids, 0 AS fresh, 0 AS retrying, false AS missed, false AS merged, NULL::bigint AS next_due INTO v_claimed;
  IF {schema}.rescan_due(v_log.rescan, v_now) THEN
    IF v_fold AND p_settle_ids IS NOT NULL OR {schema}.dead_jobs() < c_few_dead THEN
      v_from := least(v_floor, {schema}.rescan_from(v_now));
      v_rescan_at := clock_timestamp();
    ELSE
      v_log.rescan := least(v_shard.renewed + p_ttl / 3, v_now + 50000000);
    END IF;
  END IF;
  IF NOT v_shard.paused AND NOT v_alone THEN
    v_claimed := {schema}.claim_due(v_shard.id, v_from, v_now, p_token, p_number, p_owner, p_node,
      p_want, p_per_job, p_bytes - v_handed.bytes, v_settled.more, v_handed.payloads);
    v_count := coalesce(cardinality(v_claimed.ids), 0);
    v_floor := CASE WHEN v_claimed.missed THEN least(v_floor, v_claimed.floor) ELSE v_claimed.floor END;
    v_from := v_floor;
    IF v_rescan_at IS NOT NULL THEN
      v_log.rescan := {schema}.next_rescan(v_now, v_rescan_at);
    END IF;
  END IF;

  IF v_shard.paused OR v_alone AND NOT v_handed.more THEN
    v_head := NULL;
  ELSIF v_claimed.missed OR v_settled.more OR v_handed.more THEN
    v_head := v_now;
  ELSIF v_claimed.next_due IS NOT NULL THEN
    v_head := v_claimed.next_due;
  ELSE
    v_head := {schema}.head(v_shard.id, v_from);
  END IF;

  IF p_settle_ids IS NOT NULL OR p_part_ids IS NOT NULL OR p_begin_ids IS NOT NULL OR v_count > 0 OR v_handed.ids IS NOT NULL OR p_resent THEN
    SELECT NULL::bigint AS records, NULL::bigint AS bytes INTO v_kept;
    IF v_fold OR (p_settle_ids IS NOT NULL OR p_part_marks IS NOT NULL) AND p_keep_age IS NOT NULL THEN
      SELECT coalesce(t.past, 0) AS records, coalesce(t.past_bytes, 0) AS bytes INTO v_kept FROM (SELECT) o LEFT JOIN LATERAL (
        SELECT t.past, t.past_bytes FROM {schema}.turn_log t
        WHERE t.shard = v_shard.id AND t.token = v_shard.token AND t.number > v_shard.last AND t.past IS NOT NULL
        ORDER BY t.number DESC LIMIT 1
      ) t ON true;
      v_kept.records := v_kept.records + v_settled.past;
      v_kept.bytes := v_kept.bytes + v_settled.past_bytes;
      SELECT * INTO v_pruned FROM {schema}.prune_past(v_shard.id,
        v_now - coalesce(p_keep_age, v_shard.past_age),
        coalesce(p_keep_count, c_never), coalesce(p_keep_bytes, c_never),
        v_shard.past + v_kept.records, v_shard.past_bytes + v_kept.bytes);
      v_kept.records := v_kept.records - v_pruned.records;
      v_kept.bytes := v_kept.bytes - v_pruned.bytes;
      IF p_keep_age <> v_shard.past_age THEN
        UPDATE {schema}.shards SET past_age = p_keep_age WHERE id = v_shard.id;
      END IF;
    END IF;
    v_log.last := p_number; v_log.ttl := p_ttl; v_log.expires := {schema}.later(v_now, p_ttl);
    INSERT INTO {schema}.turn_log (shard, token, number, ttl, expires, floor, rescan, fresh, retrying, claimed, dead, processed, failed, past, past_bytes)
    VALUES (v_shard.id, v_shard.token, p_number, p_ttl, v_log.expires, v_floor, v_log.rescan,
      v_settled.fresh + v_claimed.fresh, v_settled.retrying + v_claimed.retrying,
      v_count - v_settled.settled, v_settled.dead, v_settled.processed, v_settled.failed, v_kept.records, v_kept.bytes);
    IF v_fold THEN
      PERFORM {schema}.fold(v_shard.id, v_now, p_number, p_ttl, v_log.expires, v_floor, v_log.rescan);
      PERFORM {schema}.prune_once(v_shard.id, v_now);
    END IF;
  ELSIF v_log.inbox OR v_claimed.merged OR v_rescan_at IS NOT NULL AND v_log.rescan > v_now + c_slow_push THEN
    PERFORM {schema}.change_counts(v_shard.id, v_settled.fresh + v_claimed.fresh, v_settled.retrying + v_claimed.retrying, v_settled.dead);
    PERFORM {schema}.fold(v_shard.id, v_now, v_log.last, v_log.ttl, v_log.expires, v_floor, v_log.rescan);
  ELSE
    PERFORM set_config('synchronous_commit', 'off', true); -- nothing was written
  END IF;

  IF v_shard.orphans AND NOT v_handed.more THEN
    UPDATE {schema}.shards SET orphans = false WHERE id = v_shard.id;
  END IF;
  v_reply.header := {schema}.reply_header('ok', p_paused => v_shard.paused, p_now => v_now, p_last => v_log.last,
    p_remaining => {schema}.remaining(v_log.expires, v_log.ttl, v_now), p_head => v_head,
    p_lease_token => v_shard.token, p_lease_owner => v_shard.owner);
  RETURN NEXT v_reply;
  IF num_nonnulls(v_settled.skipped, v_settled.deferred, v_parts.skipped, v_not_begun) > 0 THEN
    v_reply.header := json_build_object(
      'skipped', v_settled.skipped,
      'deferred', v_settled.deferred,
      'skipped_parts', v_parts.skipped,
      'not_begun', v_not_begun);
    RETURN NEXT v_reply;
  END IF;
  IF v_count > 0 AND NOT p_resent THEN
    RETURN QUERY SELECT * FROM {schema}.reply_claims(v_shard.id, v_claimed.ids);
  END IF;
  IF v_handed.ids IS NOT NULL AND NOT p_resent THEN
    RETURN QUERY SELECT * FROM {schema}.reply_claims(v_shard.id, v_handed.ids);
  END IF;
  IF v_exceptional THEN
    v_reply.header := {schema}.reply_cancellations(v_shard.id);
    IF v_reply.header IS NOT NULL THEN
      RETURN NEXT v_reply;
    END IF;
  END IF;
END {$};
