-- Claims due jobs from p_from on, in order, as far as they fit, and parks those that it skips
-- since their ids are claimed. Returns the claimed ids; fresh and retrying, how the counts of
-- queued jobs change by the jobs that were removed, or merged meanwhile; missed, whether it left
-- due jobs which a push has locked or for which too much has come into the inbox by now; floor,
-- from where the next claim has to look; merged, whether something was merged, even if nothing is
-- claimed; and next_due, the first job left, if it is known to be claimable by itself. p_carried
-- is the number of payloads that the turn hands over: it claims that many fewer, and the first has
-- to fit as well.
CREATE FUNCTION {schema}.claim_due(p_shard int, p_from bigint, p_now bigint, p_token bigint, p_number bigint, p_owner text,
  p_node text, p_want int, p_per_job bigint, p_bytes bigint, p_inbox boolean, p_carried int,
  OUT ids text[], OUT fresh int, OUT retrying int, OUT missed boolean, OUT merged boolean, OUT floor bigint, OUT next_due bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads  CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_slow_push CONSTANT bigint := 1000000; -- rescans look for pushes that take longer to commit
  v_chosen record;
  v_each   record;
  v_left   boolean := false;
  v_bytes  bigint := 0;
BEGIN
  fresh := 0; retrying := 0; missed := false; merged := false;
  p_want := least(p_want, c_payloads - p_carried);

  v_chosen := {schema}.choose_due(p_shard, p_from, p_now, p_want, p_bytes, p_inbox, p_carried = 0);
  IF v_chosen.busy IS NOT NULL AND NOT {schema}.park(p_shard, v_chosen.busy) THEN
    v_chosen.passed := least(v_chosen.passed, v_chosen.first_busy);
  END IF;

  IF cardinality(v_chosen.places) > 0 THEN
    SELECT t.ids, coalesce(t.bytes, 0), t.fresh, t.retrying INTO ids, v_bytes, fresh, retrying
    FROM {schema}.claim_together(p_shard, v_chosen.places, p_now, p_token, p_number, p_owner, p_node) t;
    v_left := coalesce(cardinality(ids), 0) < cardinality(v_chosen.places);
  END IF;

  IF v_chosen.try_each OR v_left THEN
    v_each := {schema}.claim_each(p_shard, CASE WHEN v_left THEN v_chosen.first_due ELSE v_chosen.next_due END,
      CASE WHEN v_chosen.try_each THEN v_chosen.until ELSE v_chosen.last_due END, p_now, p_token, p_number, p_owner, p_node,
      p_want, p_per_job, p_bytes, p_inbox, coalesce(cardinality(ids), 0), v_bytes, p_carried);
    ids := ids || v_each.ids; fresh := fresh + v_each.fresh; retrying := retrying + v_each.retrying; missed := v_each.missed; merged := v_each.merged;
    v_chosen.passed := least(v_chosen.passed, v_each.earliest);
  END IF;

  IF missed THEN
    floor := least(v_chosen.passed, v_chosen.first_due, v_chosen.next_due);
  ELSIF v_left THEN
    floor := least(p_now - c_slow_push, v_chosen.passed, v_chosen.first_due);
  ELSE
    floor := least(p_now - c_slow_push, v_chosen.passed, coalesce(v_chosen.last_due, v_chosen.next_due));
  END IF;

  next_due := CASE WHEN NOT v_chosen.next_single AND NOT v_left THEN v_chosen.next_due END;
END {$};
