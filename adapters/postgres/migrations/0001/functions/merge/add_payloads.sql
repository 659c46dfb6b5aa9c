-- Adds payloads to queued jobs, at most one for each (shard, id, data). The caller has locked the
-- jobs and set their has_more. Each payload looks up its job (LATERAL, OFFSET 0): a planner that
-- takes jobs for an almost empty table, as it mostly is, would read the whole table. Returns how
-- many payloads the jobs did not have.
CREATE FUNCTION {schema}.add_payloads(p_shards int[], p_ids text[], p_scores double precision[], p_data bytea[], p_meta bytea[])
RETURNS bigint LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS {$}
DECLARE
  v_added bigint;
BEGIN
  UPDATE {schema}.jobs j SET score = c.score, meta = c.meta
  FROM (
    SELECT k.ctid AS place, c.score, c.meta FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta),
    LATERAL (
      SELECT q.ctid FROM {schema}.jobs q WHERE q.shard = c.shard AND q.id = c.id AND q.data = c.data AND c.score < q.score OFFSET 0
    ) k OFFSET 0
  ) c
  WHERE j.ctid = c.place;
  UPDATE {schema}.jobs j SET low = c.low
  FROM (
    SELECT k.ctid AS place, c.low FROM (
      SELECT u.shard, u.id, min(u.score) AS low FROM unnest(p_shards, p_ids, p_scores) u (shard, id, score) GROUP BY u.shard, u.id
    ) c, LATERAL (
      SELECT q.ctid FROM {schema}.jobs q WHERE q.shard = c.shard AND q.id = c.id AND c.low < q.low OFFSET 0
    ) k OFFSET 0
  ) c
  WHERE j.ctid = c.place;

  WITH put AS (
    INSERT INTO {schema}.payloads AS p (shard, id, digest, score, data, meta)
    SELECT c.shard, c.id, sha256(c.data), c.score, c.data, c.meta
    FROM unnest(p_shards, p_ids, p_scores, p_data, p_meta) c (shard, id, score, data, meta), LATERAL (
      SELECT FROM {schema}.jobs q WHERE q.shard = c.shard AND q.id = c.id AND q.data IS DISTINCT FROM c.data OFFSET 0
    ) k
    ON CONFLICT (shard, id, digest) DO UPDATE SET score = excluded.score, meta = excluded.meta
    WHERE excluded.score < p.score
    RETURNING xmax = 0 AS added -- an existing row has the transaction that locked it
  )
  SELECT count(*) FILTER (WHERE added) INTO v_added FROM put;
  RETURN v_added;
END {$};
