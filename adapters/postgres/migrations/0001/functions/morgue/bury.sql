-- Adds dead letters to the morgue. If the id has one already, payloads merge, and the newest error,
-- group and time stay, with all tags. Returns how many more ids the morgue has. The caller holds
-- the shard's lock.
CREATE FUNCTION {schema}.bury(p_shard int, p_arrivals {schema}.arrival[]) RETURNS int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_ids    text[];
  v_times  bigint[];
  v_errors text[];
  v_groups text[];
  v_had    text[]; -- their former groups, NULL for new ones
  n        record;
BEGIN
  SELECT array_agg(c.id ORDER BY c.place), array_agg(c.perform_at ORDER BY c.place), array_agg(c.error ORDER BY c.place),
    array_agg(c.grp ORDER BY c.place), array_agg(d.grp ORDER BY c.place)
  INTO v_ids, v_times, v_errors, v_groups, v_had
  FROM (
    SELECT DISTINCT ON (id) id, perform_at, error, grp, ordinality AS place
    FROM unnest(p_arrivals) WITH ORDINALITY c
    ORDER BY id, ordinality DESC
  ) c LEFT JOIN LATERAL (
    SELECT d.grp FROM {schema}.dead_letters d WHERE d.shard = p_shard AND d.id = c.id
  ) d ON true;
  v_groups := {schema}.admit_groups(p_shard, v_groups);
  IF EXISTS (SELECT FROM unnest(p_arrivals) a WHERE starts_with(a.error, chr(30))) THEN
    v_errors := ARRAY(
      SELECT {schema}.add_tags((array_agg(a.error ORDER BY a.ordinality DESC))[1],
        coalesce(array_agg(DISTINCT a.error COLLATE "C") FILTER (WHERE starts_with(a.error, chr(30))), '{}'))
      FROM unnest(p_arrivals) WITH ORDINALITY a GROUP BY a.id ORDER BY max(a.ordinality)); -- the order of v_ids
  END IF;

  INSERT INTO {schema}.dead_letters AS d (shard, id, changed_at, error, grp)
  SELECT p_shard, u.* FROM unnest(v_ids, v_times, v_errors, v_groups) u (id, changed_at, error, grp)
  ORDER BY u.id COLLATE "C"
  ON CONFLICT (shard, id) DO UPDATE SET changed_at = excluded.changed_at, error = {schema}.unite_tags(excluded.error, d.error), grp = excluded.grp;

  PERFORM {schema}.merge_dead_payloads(p_shard, p_arrivals);
  SELECT array_agg(c.grp) AS names, array_agg(c.change) AS changes, array_agg(c.at) AS times INTO n FROM (
    SELECT u.grp, (u.had IS DISTINCT FROM u.grp)::int AS change, u.at FROM unnest(v_groups, v_had, v_times) u (grp, had, at)
    UNION ALL
    SELECT u.had, -1, NULL FROM unnest(v_groups, v_had) u (grp, had) WHERE u.had <> u.grp
  ) c;
  PERFORM {schema}.change_groups(p_shard, n.names, n.changes, n.times);
  RETURN cardinality(array_positions(v_had, NULL));
END {$};
