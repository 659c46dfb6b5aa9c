-- Merges payloads into dead letters by their queue's merge rule, in the order given. Returns the
-- ids of the dead letters that have changed, and counts the payloads that the rule has dropped. The
-- caller holds the shard's lock and has switched off sequential scans.
CREATE FUNCTION {schema}.merge_dead_payloads(p_shard int, p_arrivals {schema}.inbox[], OUT changed text[]) LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_rule       int := (SELECT s.merge_rule FROM {schema}.shards s WHERE s.id = p_shard);
  v_superseded int := 0;
  v_added      boolean;
  v_dropped    bytea;
  a            {schema}.inbox;
BEGIN
  IF v_rule = 0 THEN
    WITH put AS (
      INSERT INTO {schema}.dead_letter_payloads AS p (shard, id, digest, score, data, meta)
      SELECT DISTINCT ON (id, data) p_shard, id, sha256(data), score, data, meta
      FROM unnest(p_arrivals) WITH ORDINALITY c
      ORDER BY id, data, score, ordinality
      ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
      WHERE excluded.score < p.score
      RETURNING p.id
    ) SELECT array_agg(put.id) INTO changed FROM put;
    RETURN;
  END IF;

  FOREACH a IN ARRAY p_arrivals LOOP
    INSERT INTO {schema}.dead_letter_payloads AS p (shard, id, digest, score, data, meta)
    VALUES (p_shard, a.id, sha256(a.data), a.score, a.data, a.meta)
    ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
    WHERE {schema}.replaces(v_rule, excluded.score, p.score)
    RETURNING xmax = 0 INTO v_added; -- an existing row has the transaction that locked it

    v_dropped := NULL;
    IF v_rule > 0 AND v_added AND v_rule < (
      SELECT count(*) FROM (SELECT FROM {schema}.dead_letter_payloads x WHERE x.shard = p_shard AND x.id = a.id LIMIT v_rule + 1) most
    ) THEN
      DELETE FROM {schema}.dead_letter_payloads p WHERE p.ctid = (
        SELECT x.ctid FROM {schema}.dead_letter_payloads x WHERE x.shard = p_shard AND x.id = a.id ORDER BY x.score, substr(x.data, 1, 256), x.data LIMIT 1
      ) RETURNING p.data INTO v_dropped;
      v_superseded := v_superseded + 1;
    END IF;

    IF v_added IS NOT NULL AND v_dropped IS DISTINCT FROM a.data THEN
      changed := changed || a.id;
    END IF;
  END LOOP;

  PERFORM {schema}.count_superseded(p_shard, v_superseded);
END {$};
