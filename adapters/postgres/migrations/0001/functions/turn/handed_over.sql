-- Returns the ids of the claims that a lease was handed, those that are still claimed, in order of
-- id, as many payloads and bytes as one step may carry; the first in any case.
CREATE FUNCTION {schema}.handed_over(p_shard int, p_token bigint) RETURNS text[] LANGUAGE plpgsql STABLE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_bytes    CONSTANT bigint := 8388608; -- core.MaxStepBytes
BEGIN
  RETURN (
    SELECT array_agg(o.id) FROM (
      SELECT c.id, row_number() OVER w AS nth, sum(c.payloads) OVER w AS sum, sum(c.size) OVER w AS bytes FROM (
        SELECT c.id, 1 + coalesce(cardinality(c.more_scores), 0) AS payloads, coalesce(c.size, octet_length(c.data)) AS size
        FROM {schema}.claimed c WHERE c.shard = p_shard AND c.handed_token = p_token ORDER BY c.id LIMIT c_payloads
      ) c WINDOW w AS (ORDER BY c.id)
    ) o WHERE o.nth = 1 OR o.sum <= c_payloads AND o.bytes <= c_bytes);
END {$};
