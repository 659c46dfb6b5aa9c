-- Deletes payloads of a queued job, and the job with its last one. Returns whether the job stays.
CREATE FUNCTION {schema}.remove_payloads(p_shard int, p_id text, p_data bytea[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  p         record;
  v_digests bytea[] := ARRAY(SELECT sha256(d) FROM unnest(p_data) d);
BEGIN
  DELETE FROM {schema}.payloads x WHERE x.shard = p_shard AND x.id = p_id AND x.digest = ANY (v_digests);
  DELETE FROM {schema}.payloads x WHERE (x.shard, x.id, x.digest) = (
    SELECT y.shard, y.id, y.digest FROM {schema}.payloads y WHERE y.shard = p_shard AND y.id = p_id LIMIT 1
  ) AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id AND j.data = ANY (p_data))
  RETURNING x.score, x.data, x.meta INTO p;
  IF FOUND THEN
    UPDATE {schema}.jobs j SET score = p.score, data = p.data, meta = p.meta WHERE j.shard = p_shard AND j.id = p_id;
    RETURN true;
  END IF;
  DELETE FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id AND j.data = ANY (p_data);
  RETURN NOT FOUND;
END {$};
