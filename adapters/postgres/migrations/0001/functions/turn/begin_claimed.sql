-- Marks claimed jobs as begun. Returns the places, from 1, of those that are not claimed with this
-- receipt, or whose row another session has locked, or NULL if there are no such places.
CREATE FUNCTION {schema}.begin_claimed(p_shard int, p_ids text[], p_tokens bigint[], p_numbers bigint[])
RETURNS int[] LANGUAGE plpgsql VOLATILE AS {$}
BEGIN
  UPDATE {schema}.claimed c SET begun = true
  WHERE c.ctid = ANY (ARRAY(
    SELECT f.at FROM unnest(p_ids, p_tokens, p_numbers) u (id, token, number), LATERAL (
      SELECT c.ctid AS at FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number FOR UPDATE SKIP LOCKED
    ) f)) AND c.begun IS NOT TRUE;
  RETURN (
    SELECT array_agg(u.place ORDER BY u.place) FROM unnest(p_ids, p_tokens, p_numbers) WITH ORDINALITY u (id, token, number, place)
    WHERE NOT EXISTS (SELECT FROM {schema}.claimed c
      WHERE c.shard = p_shard AND c.id = u.id AND c.token = u.token AND c.number = u.number AND c.begun));
END {$};
