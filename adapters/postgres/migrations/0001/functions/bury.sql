-- Adds dead letters to the morgue: of an id that is there, payloads merge, and the newest error and
-- time stay. Returns how many ids more the morgue has. The caller holds the shard's lock.
CREATE FUNCTION {schema}.bury(p_shard int, p_arrivals {schema}.arrival[]) RETURNS int LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_before int;
  v_ids    int;
BEGIN
  SELECT count(*) INTO v_before FROM {schema}.dead_letters d
  WHERE d.shard = p_shard AND d.id = ANY (ARRAY(SELECT DISTINCT id FROM unnest(p_arrivals)));

  INSERT INTO {schema}.dead_letters (shard, id, changed_at, error)
  SELECT DISTINCT ON (id) p_shard, id, perform_at, error
  FROM unnest(p_arrivals) WITH ORDINALITY c
  ORDER BY id, ordinality DESC
  ON CONFLICT (shard, id) DO UPDATE SET changed_at = excluded.changed_at, error = excluded.error;
  GET DIAGNOSTICS v_ids = ROW_COUNT;

  INSERT INTO {schema}.dead_letter_payloads AS p (shard, id, digest, score, data, meta)
  SELECT DISTINCT ON (id, data) p_shard, id, sha256(data), score, data, meta
  FROM unnest(p_arrivals) WITH ORDINALITY c
  ORDER BY id, data, score, ordinality
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score;
  RETURN v_ids - v_before;
END {$};
