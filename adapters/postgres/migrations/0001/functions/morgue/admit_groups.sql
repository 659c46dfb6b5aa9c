-- Returns the groups that dead letters are buried in, given their names in order: other for a name
-- that the shard lacks and has no room for (core.Groups). The caller holds the shard's lock.
CREATE FUNCTION {schema}.admit_groups(p_shard int, p_names text[]) RETURNS text[] LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  c_most  CONSTANT int := 1000; -- core.MaxGroups
  c_other CONSTANT text := 'other'; -- core.OtherGroup
  v_new  text[];
  v_room int;
BEGIN
  v_new := ARRAY(
    SELECT n.grp FROM unnest(p_names) WITH ORDINALITY n (grp, place)
    WHERE NOT EXISTS (SELECT FROM {schema}.dead_groups g WHERE g.shard = p_shard AND g.grp = n.grp)
    GROUP BY n.grp ORDER BY min(n.place));
  IF cardinality(v_new) > 0 THEN
    SELECT greatest(0, c_most - count(*)) INTO v_room FROM {schema}.dead_groups g WHERE g.shard = p_shard;
    IF cardinality(v_new) > v_room THEN
      RETURN ARRAY(
        SELECT CASE WHEN n.grp = ANY (v_new[v_room + 1 :]) THEN c_other ELSE n.grp END
        FROM unnest(p_names) WITH ORDINALITY n (grp, place) ORDER BY n.place);
    END IF;
  END IF;
  RETURN p_names;
END {$};
