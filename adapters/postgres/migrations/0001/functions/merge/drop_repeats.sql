-- Returns arrivals that were taken out of a shard's inbox without the repeats (docs/rules.md 17), NULL
-- if none is left. It counts the repeats, and remembers the others that are accepted once. The caller
-- has locked no job: see find_repeats.
CREATE FUNCTION {schema}.drop_repeats(p_shard int, p_arrivals {schema}.inbox[]) RETURNS {schema}.inbox[]
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_repeats int[] := {schema}.find_repeats(p_shard, ARRAY(SELECT a.once_key FROM unnest(p_arrivals) a),
    ARRAY(SELECT a.first_push FROM unnest(p_arrivals) a), ARRAY(SELECT a.once FROM unnest(p_arrivals) a));
BEGIN
  IF cardinality(v_repeats) = 0 THEN
    RETURN p_arrivals;
  END IF;

  INSERT INTO {schema}.count_changes (shard, fresh, retrying, dead, processed, failed, repeated)
  VALUES (p_shard, 0, 0, 0, 0, 0, cardinality(v_repeats));
  RETURN nullif(ARRAY(
    SELECT r.arrival FROM (SELECT a AS arrival, row_number() OVER () AS place FROM unnest(p_arrivals) a) r
    WHERE r.place <> ALL (v_repeats) ORDER BY r.place
  ), '{}');
END {$};
