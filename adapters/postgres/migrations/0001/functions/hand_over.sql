-- Hands over the claims of earlier leases that nobody has locked: those that the lease was not
-- handed yet, or all if p_all. p_number is the turn that hands them over, 0 an acquire. Returns
-- their ids, and whether there are others.
CREATE FUNCTION {schema}.hand_over(p_shard int, p_token bigint, p_number bigint, p_all boolean, OUT ids text[], OUT more boolean)
LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  SELECT array_agg(o.id) INTO ids FROM (
    SELECT c.id FROM {schema}.claimed c
    WHERE c.shard = p_shard AND c.token <> p_token AND (p_all OR c.handed_token IS DISTINCT FROM p_token)
    ORDER BY c.id FOR UPDATE SKIP LOCKED
  ) o;
  UPDATE {schema}.claimed c SET handed_token = p_token, handed_number = p_number
  WHERE c.shard = p_shard AND c.id = ANY (ids) AND c.handed_token IS DISTINCT FROM p_token;
  more := EXISTS (SELECT FROM {schema}.claimed c
    WHERE c.shard = p_shard AND c.token <> p_token AND c.handed_token IS DISTINCT FROM p_token);
END {$};
