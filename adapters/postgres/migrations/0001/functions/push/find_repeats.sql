-- Decides which entries of a shard are repeats, and remembers the others (docs/rules.md 17). An entry
-- has its key, the instant of its push, and its time in microseconds, NULL for one that is always
-- accepted. Returns the places of the repeats, from 1. The caller has locked no job of the shard: this
-- waits for pushes of equal entries, which lock jobs afterwards.
CREATE FUNCTION {schema}.find_repeats(p_shard int, p_keys uuid[], p_at bigint[], p_once bigint[]) RETURNS int[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
DECLARE
  c_never CONSTANT bigint := 9007199254740992; -- core.MaxInstant
  v_left     int[] := ARRAY(
    SELECT e.place::int FROM unnest(p_once) WITH ORDINALITY e (once, place)
    WHERE e.once IS NOT NULL);
  v_accepted uuid[];
  v_some     int[];
  v_repeats  int[] := '{}';
BEGIN
  -- A round decides the first entry of each key, since one statement can't change a row twice, and
  -- the later ones that are repeats of it.
  WHILE cardinality(v_left) > 0 LOOP
    WITH accepted AS (
      INSERT INTO {schema}.once AS o (shard, key, since, until)
      SELECT p_shard, f.key, p_at[f.place], least(c_never, p_at[f.place] + p_once[f.place])
      FROM (SELECT p_keys[l.place] AS key, min(l.place) AS place FROM unnest(v_left) l (place) GROUP BY 1) f
      ORDER BY f.key
      ON CONFLICT (shard, key) DO UPDATE SET since = excluded.since, until = excluded.until
      WHERE o.until <= excluded.since
      RETURNING o.key
    )
    SELECT array_agg(a.key) INTO v_accepted FROM accepted a;
    EXIT WHEN cardinality(v_accepted) = cardinality(v_left);

    -- The row of a repeat may be removed by now, if its time has ended.
    SELECT array_agg(l.place) FILTER (WHERE l.is_repeat), array_agg(l.place) FILTER (WHERE NOT l.is_repeat)
    INTO v_some, v_left
    FROM (
      SELECT e.place, e.nth = 1 OR coalesce(p_at[e.place] < (
        SELECT o.until FROM {schema}.once o WHERE o.shard = p_shard AND o.key = e.key
      ), false) AS is_repeat
      FROM (
        SELECT l.place, p_keys[l.place] AS key, row_number() OVER (PARTITION BY p_keys[l.place] ORDER BY l.place) AS nth
        FROM unnest(v_left) l (place)
      ) e
      LEFT JOIN unnest(v_accepted) a (key) ON a.key = e.key
      WHERE e.nth > 1 OR a.key IS NULL
    ) l;
    v_repeats := v_repeats || v_some;
  END LOOP;
  RETURN v_repeats;
END {$};
