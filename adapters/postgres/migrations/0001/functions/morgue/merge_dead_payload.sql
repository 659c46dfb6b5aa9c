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
  IF p_merge_rule > 0 AND v_added THEN
    WITH gone AS (
      DELETE FROM {schema}.dead_letter_payloads p WHERE p.ctid = ANY (ARRAY(
        SELECT x.ctid FROM {schema}.dead_letter_payloads x WHERE x.shard = p_shard AND x.id = p_id
        ORDER BY x.score DESC, x.data DESC OFFSET p_merge_rule
      )) RETURNING p.data
    )
    SELECT count(*), count(*) FILTER (WHERE g.data = p_data) = 0 INTO superseded, changed FROM gone g;
  END IF;
END {$};
