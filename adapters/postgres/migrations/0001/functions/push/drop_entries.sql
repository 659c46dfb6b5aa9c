-- Decides what becomes of the entries of a push to a shard, before a job of the shard is locked:
-- returns 1 for an entry that is stale (docs/rules.md 16), 2 for a repeat (17), and 0 for any other. It
-- counts both, and remembers the others that are accepted once. p_scores is NULL if stale entries stay,
-- and p_once as in find_repeats, NULL if each entry is always accepted.
CREATE FUNCTION {schema}.drop_entries(p_shard int, p_now bigint,
  p_ids text[], p_scores float8[], p_keys uuid[], p_once bigint[])
RETURNS int[] LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS {$}
DECLARE
  v_dropped int[] := array_fill(0, ARRAY[cardinality(p_ids)]);
  v_stale   int[] := '{}';
  v_repeats int[] := '{}';
  v_place   int;
BEGIN
  IF p_scores IS NOT NULL THEN
    v_stale := ARRAY(SELECT m.place FROM {schema}.marks(p_shard, p_ids) m WHERE p_scores[m.place] <= m.score);
    FOREACH v_place IN ARRAY v_stale LOOP
      v_dropped[v_place] := 1;
      IF p_once IS NOT NULL THEN
        p_once[v_place] := NULL;
      END IF;
    END LOOP;
  END IF;

  IF p_once IS NOT NULL THEN
    v_repeats := {schema}.find_repeats(p_shard, p_keys, array_fill(p_now, ARRAY[cardinality(p_once)]), p_once);
    FOREACH v_place IN ARRAY v_repeats LOOP
      v_dropped[v_place] := 2;
    END LOOP;
    PERFORM {schema}.prune_once(p_shard, p_now);
  END IF;

  IF cardinality(v_stale) + cardinality(v_repeats) > 0 THEN
    INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, stale, repeated)
    VALUES (p_shard, 0, 0, 0, 0, 0, cardinality(v_stale), cardinality(v_repeats));
  END IF;
  RETURN v_dropped;
END {$};
