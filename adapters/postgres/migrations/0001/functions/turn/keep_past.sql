-- Records what became of jobs that settlements have ended as done, for the settlements that have a
-- record. Returns the changes of the number of the shard's records, and of the bytes of their results.
CREATE FUNCTION {schema}.keep_past(p_shard int, p_now bigint, p_settlements {schema}.settlement[],
  OUT records int, OUT bytes bigint)
LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  -- The former records are locked, so that no turn removes one that is counted here as replaced.
  WITH done AS MATERIALIZED (
    SELECT s.id, s.past FROM unnest(p_settlements) s WHERE NOT (s.past IS NULL)
  ), former AS MATERIALIZED (
    SELECT f.size FROM done d, LATERAL (
      SELECT coalesce(octet_length(p.result), 0) AS size FROM {schema}.past p WHERE p.shard = p_shard AND p.id = d.id AND NOT p.mark FOR UPDATE
    ) f
  )
  SELECT (SELECT count(*) FROM done) - (SELECT count(*) FROM former),
    (SELECT coalesce(sum(octet_length((d.past).result)), 0) FROM done d) - (SELECT coalesce(sum(f.size), 0) FROM former f)
  INTO records, bytes;

  INSERT INTO {schema}.past AS p (shard, id, done_at, started, took, score, raises, payloads, attempt, node, result)
  SELECT p_shard, s.id, p_now, (s.past).started, (s.past).took, (s.past).score, coalesce((s.past).raises, false), (s.past).payloads, (s.past).attempt,
    (s.past).node, (s.past).result
  FROM unnest(p_settlements) s WHERE NOT (s.past IS NULL)
  ORDER BY s.id
  ON CONFLICT (shard, id, mark) DO UPDATE SET
    done_at = excluded.done_at, started = excluded.started, took = excluded.took, score = excluded.score, raises = excluded.raises,
    payloads = excluded.payloads, attempt = excluded.attempt, node = excluded.node, result = excluded.result;
END {$};
