-- Does what merge does, by any merge rule: one arrival after another, for each id in the order
-- given. It locks jobs in order of their ids. It counts the payloads that the rule drops. The
-- payloads after the first one of a job put back are merged like a push onto it.
CREATE FUNCTION {schema}.merge_by_rule(p_shard int, p_merge_rule int, p_arrivals {schema}.arrival[], OUT fresh int, OUT retrying int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_keep       CONSTANT smallint := 0; -- core.Keep
  v_arrival    {schema}.arrival;
  v_before     {schema}.arrival; -- the one before, without its payload
  v_met        record;
  v_superseded int := 0;
BEGIN
  fresh := 0; retrying := 0;
  FOR v_arrival IN
    SELECT u.kind, u.rule, u.rule_limit, u.perform_at, u.first_push, u.score, u.retry_count, u.recoveries, u.id, u.error, u.data, u.meta, u.grp
    FROM unnest(p_arrivals) WITH ORDINALITY u ORDER BY u.id COLLATE "C", u.ordinality
  LOOP
    IF v_arrival.kind = 'put_back' AND v_before.kind = 'put_back' AND v_arrival.id = v_before.id
      AND (v_arrival.rule, v_arrival.perform_at, v_arrival.first_push, v_arrival.retry_count, v_arrival.recoveries, v_arrival.error)
      = (v_before.rule, v_before.perform_at, v_before.first_push, v_before.retry_count, v_before.recoveries, v_before.error) THEN
      v_arrival.kind := 'push';
      v_arrival.rule := c_keep;
    ELSE
      v_before := v_arrival;
      v_before.data := NULL;
      v_before.meta := NULL;
    END IF;

    v_met := {schema}.merge_arrival(p_shard, p_merge_rule, v_arrival);
    fresh := fresh + v_met.fresh;
    retrying := retrying + v_met.retrying;
    earliest := least(earliest, v_met.due);
    v_superseded := v_superseded + v_met.superseded;
  END LOOP;

  PERFORM {schema}.count_superseded(p_shard, v_superseded);
END {$};
