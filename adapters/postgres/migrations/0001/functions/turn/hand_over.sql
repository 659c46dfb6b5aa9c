-- Hands over claims of earlier leases that the lease was not handed yet and that nobody has
-- locked, in order of id, as many payloads as one step may carry and at most p_bytes bytes.
-- p_number is the turn that hands them over, whose first claim may be larger; 0 is an acquire.
-- Returns their ids, NULL for none, with the number and bytes of their payloads; and more, whether
-- others are left.
CREATE FUNCTION {schema}.hand_over(p_shard int, p_token bigint, p_number bigint, p_bytes bigint,
  OUT ids text[], OUT payloads int, OUT bytes bigint, OUT more boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
BEGIN
  SELECT array_agg(o.id), coalesce(max(o.sum), 0), coalesce(max(o.bytes), 0) INTO ids, payloads, bytes FROM (
    SELECT c.id, row_number() OVER w AS nth, sum(c.payloads) OVER w AS sum, sum(c.size) OVER w AS bytes FROM (
      SELECT c.id, 1 + coalesce(cardinality(c.more_scores), 0) AS payloads, coalesce(c.size, octet_length(c.data)) AS size
      FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.token <> p_token AND c.handed_token IS DISTINCT FROM p_token
      ORDER BY c.id LIMIT c_payloads FOR UPDATE SKIP LOCKED
    ) c WINDOW w AS (ORDER BY c.id)
  ) o WHERE o.nth = 1 AND p_number > 0 OR o.sum <= c_payloads AND o.bytes <= p_bytes;
  UPDATE {schema}.claimed c SET handed_token = p_token, handed_number = p_number WHERE c.shard = p_shard AND c.id = ANY (ids);
  more := EXISTS (SELECT FROM {schema}.claimed c
    WHERE c.shard = p_shard AND c.token <> p_token AND c.handed_token IS DISTINCT FROM p_token);
END {$};
