-- Merges one payload into a dead letter by any merge rule. changed is whether the dead letter has
-- changed; superseded is how many payloads the rule has dropped. The caller holds the shard's lock.
CREATE FUNCTION {schema}.merge_dead_payload(p_shard int, p_id text, p_merge_rule int, p_score double precision, p_data bytea, p_meta bytea,
  OUT changed boolean, OUT superseded int) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS {$}
DECLARE
  v_added boolean;
BEGIN
  superseded := 0;
  INSERT INTO {schema}.dead_letter_payloads AS p (shard, id, digest, score, data, meta)
  VALUES (p_shard, p_id, sha256(p_data), p_score, p_data, p_meta)
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE p_merge_rule = 0 AND excluded.score < p.score OR p_merge_rule <> 0 AND excluded.score > p.score
  RETURNING xmax = 0 INTO v_added; -- an existing row has the transaction that locked it
  changed := v_added IS NOT NULL;
  IF p_merge_rule > 0 AND v_added AND p_merge_rule < (
    SELECT count(*) FROM (SELECT FROM {schema}.dead_letter_payloads x WHERE x.shard = p_shard AND x.id = p_id LIMIT p_merge_rule + 1) most
  ) THEN
    DELETE FROM {schema}.dead_letter_payloads p WHERE p.ctid = (
      SELECT x.ctid FROM {schema}.dead_letter_payloads x WHERE x.shard = p_shard AND x.id = p_id ORDER BY x.score, substr(x.data, 1, 256), x.data LIMIT 1
    ) RETURNING p.data <> p_data INTO changed;
    superseded := 1;
  END IF;
END {$};
