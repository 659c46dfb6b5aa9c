-- The first half of a turn: takes some rows out of the inbox if p_inbox is set, carries out
-- settlements (as in settle_claimed), merges the arrivals of both, and, if p_parked is set, unparks
-- the jobs of ids whose claims have ended. p_inbox and p_parked are whether there may be such rows
-- and jobs. Returns the changes of the counts, where settled is by how many fewer jobs are claimed, and past and past_bytes are as of keep_past;
-- the places of skipped and deferred settlements, from 1; early, from where claims must look again
-- because of that; and more, whether the inbox may hold more. The caller has locked no job: merge
-- waits for pushes, and only it locks jobs in their order.
CREATE FUNCTION {schema}.settle_and_merge(p_shard int, p_parked boolean, p_inbox boolean, p_now bigint,
  p_ids text[], p_tokens bigint[], p_numbers bigint[], p_settlements {schema}.settlement[],
  OUT fresh int, OUT retrying int, OUT settled int, OUT dead int, OUT processed int, OUT failed int, OUT past int, OUT past_bytes bigint,
  OUT skipped int[], OUT deferred int[], OUT early bigint, OUT more boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_queued  {schema}.inbox[];
  v_buried  {schema}.inbox[];
  v_freed   text[] := CASE WHEN p_parked THEN p_ids END;
  v_settled record;
  v_merged  record;
  v_unparked record;
BEGIN
  fresh := 0; retrying := 0; settled := 0; dead := 0; processed := 0; failed := 0; past := 0; past_bytes := 0; more := false;
  IF p_inbox THEN
    SELECT i.queued, i.buried, i.early, i.freed || v_freed, i.more INTO v_queued, v_buried, early, v_freed, more
    FROM {schema}.take_inbox(p_shard) i;
  END IF;

  IF p_ids IS NOT NULL THEN
    v_settled := {schema}.settle_claimed(p_shard, p_now, p_ids, p_tokens, p_numbers, p_settlements);
    settled := coalesce(cardinality(v_settled.done), 0); processed := v_settled.processed; failed := v_settled.failed;
    past := v_settled.past; past_bytes := v_settled.past_bytes;
    v_queued := v_queued || v_settled.put_back; v_buried := v_buried || v_settled.buried;

    IF cardinality(p_ids) > settled THEN
      SELECT array_agg(o.place ORDER BY o.place) FILTER (WHERE NOT o.claimed), array_agg(o.place ORDER BY o.place) FILTER (WHERE o.claimed)
      INTO skipped, deferred FROM (
        SELECT u.place, EXISTS (SELECT FROM {schema}.claimed c
          WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number) AS claimed
        FROM unnest(p_ids, p_tokens, p_numbers) WITH ORDINALITY u (id, token, number, place)
        WHERE v_settled.done IS NULL OR u.place <> ALL (v_settled.done)
      ) o;
    END IF;
  END IF;

  IF v_queued IS NOT NULL THEN
    v_merged := {schema}.merge(p_shard, v_queued);
    fresh := v_merged.fresh; retrying := v_merged.retrying;
    early := least(early, v_merged.earliest);
  END IF;
  IF v_freed IS NOT NULL THEN
    v_unparked := {schema}.unpark(p_shard, v_freed);
    early := least(early, v_unparked.earliest);
    more := more OR v_unparked.more;
  END IF;
  IF v_buried IS NOT NULL THEN
    dead := {schema}.bury(p_shard, v_buried);
  END IF;
END {$};
