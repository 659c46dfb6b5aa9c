-- Adds dead letters to the morgue. If the id has one already, payloads merge, and the newest one
-- takes its place, with all tags. Returns how many more ids the morgue has. The caller holds the
-- shard's lock.
CREATE FUNCTION {schema}.bury(p_shard int, p_arrivals {schema}.inbox[]) RETURNS int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_letter  {schema}.dead_letters;
  v_letters {schema}.dead_letters[]; -- the newest of each id
  v_groups  text[];
  v_times   bigint[];
  v_had     text[]; -- their former groups, NULL for new ones
  v_places  tid[];  -- the rows that they replace
  v_tags    text;
  r         record;
  n         record;
BEGIN
  FOR r IN
    SELECT c.letter, c.tags || d.tags AS tags, d.grp AS had, d.place FROM (
      SELECT a.id, (array_agg(a.letter ORDER BY a.ordinality DESC))[1] AS letter, array_agg(DISTINCT (a.letter).tags) AS tags,
        max(a.ordinality) AS place
      FROM unnest(p_arrivals) WITH ORDINALITY a GROUP BY a.id
    ) c LEFT JOIN LATERAL (
      SELECT d.ctid AS place, d.grp, d.tags FROM {schema}.dead_letters d WHERE d.shard = p_shard AND d.id = c.id
    ) d ON true
    ORDER BY c.place
  LOOP
    v_letter := r.letter;
    FOREACH v_tags IN ARRAY r.tags LOOP
      v_letter.tags := {schema}.unite_tags(v_letter.tags, coalesce(v_tags, ''));
    END LOOP;

    v_letters := array_append(v_letters, v_letter);
    v_groups := array_append(v_groups, v_letter.grp);
    v_times := array_append(v_times, v_letter.changed_at);
    v_had := array_append(v_had, r.had);
    v_places := array_append(v_places, r.place);
  END LOOP;

  v_groups := {schema}.admit_groups(p_shard, v_groups);
  FOR i IN 1..cardinality(v_letters) LOOP
    v_letter := v_letters[i];
    v_letter.grp := v_groups[i];
    v_letters[i] := v_letter;
  END LOOP;

  DELETE FROM {schema}.dead_letters d WHERE d.ctid = ANY (v_places);
  INSERT INTO {schema}.dead_letters SELECT l.* FROM unnest(v_letters) l ORDER BY l.id;
  PERFORM {schema}.merge_dead_payloads(p_shard, p_arrivals);

  SELECT array_agg(c.grp) AS names, array_agg(c.change) AS changes, array_agg(c.at) AS times INTO n FROM (
    SELECT u.grp, (u.had IS DISTINCT FROM u.grp)::int AS change, u.at FROM unnest(v_groups, v_had, v_times) u (grp, had, at)
    UNION ALL
    SELECT u.had, -1, NULL FROM unnest(v_groups, v_had) u (grp, had) WHERE u.had <> u.grp
  ) c;
  PERFORM {schema}.change_groups(p_shard, n.names, n.changes, n.times);
  RETURN cardinality(array_positions(v_had, NULL));
END {$};
