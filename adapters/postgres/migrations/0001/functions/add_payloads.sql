-- Adds payloads to queued jobs, at most one for each (shard, id, data). The caller has locked the
-- jobs and set their has_more.
CREATE FUNCTION {schema}.add_payloads(p_shards int[], p_ids text[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
BEGIN
  UPDATE {schema}.jobs j SET score = c.score, meta = c.meta
  FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta)
  WHERE j.shard = c.shard AND j.id = c.id AND j.data = c.data AND c.score < j.score;
  UPDATE {schema}.jobs j SET low = c.low
  FROM (SELECT u.shard, u.id, min(u.score) AS low FROM unnest(p_shards, p_ids, p_scores) u (shard, id, score) GROUP BY u.shard, u.id) c
  WHERE j.shard = c.shard AND j.id = c.id AND c.low < j.low;

  INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
  SELECT c.shard, c.id, sha256(c.data), c.score, c.data, c.meta
  FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta)
  JOIN {schema}.jobs j ON j.shard = c.shard AND j.id = c.id AND j.data IS DISTINCT FROM c.data
  ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
  WHERE excluded.score < p.score;
END {$};
