-- Returns the ids of the claims that a lease was handed, those that are still claimed, in order of
-- id, as many payloads as one step may carry and at most p_bytes bytes.
CREATE FUNCTION {schema}.handed_over(p_shard int, p_token bigint, p_bytes bigint) RETURNS text[] LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
BEGIN
  RETURN (
    SELECT array_agg(o.id) FROM (
      SELECT c.id, sum(c.payloads) OVER w AS sum, sum(c.size) OVER w AS bytes FROM (
        SELECT c.id, 1 + coalesce(cardinality(c.more_scores), 0) AS payloads, coalesce(c.size, octet_length(c.data)) AS size
        FROM {schema}.claimed c WHERE c.shard = p_shard AND c.handed_token = p_token ORDER BY c.id LIMIT c_payloads
      ) c WINDOW w AS (ORDER BY c.id)
    ) o WHERE o.sum <= c_payloads AND o.bytes <= p_bytes);
END {$};
