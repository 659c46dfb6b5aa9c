-- Does what merge does, by any merge rule: one arrival after another, for each id in the order
-- given. It locks jobs in order of their ids. It counts the payloads that the rule drops.
CREATE FUNCTION {schema}.merge_by_rule(p_shard int, p_merge_rule int, p_arrivals {schema}.inbox[], OUT fresh int, OUT retrying int, OUT earliest bigint)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  a            record;
  v_met        record;
  v_superseded int := 0;
BEGIN
  fresh := 0; retrying := 0;
  FOR a IN
    SELECT r.arrival FROM (SELECT u AS arrival, u.id, row_number() OVER () AS nth FROM unnest(p_arrivals) u) r ORDER BY r.id, r.nth
  LOOP
    v_met := {schema}.merge_arrival(p_shard, p_merge_rule, a.arrival);
    fresh := fresh + v_met.fresh;
    retrying := retrying + v_met.retrying;
    earliest := least(earliest, v_met.due);
    v_superseded := v_superseded + v_met.superseded;
  END LOOP;

  PERFORM {schema}.count_superseded(p_shard, v_superseded);
END {$};
