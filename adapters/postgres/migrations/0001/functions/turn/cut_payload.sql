-- Takes one payload out of a row of claimed, which the caller has locked. The row gets the receipt
-- that core.Receipt.NextPart returns, with the given retry_count, recoveries and begun, and without a
-- slot if the payload was the first. p_position is the payload's position in the claimed job, from 0. Returns whether it did: not if the claim
-- has no such payload or no other one.
CREATE FUNCTION {schema}.cut_payload(p_at tid, p_position int, p_retry_count int, p_recoveries int, p_begun boolean)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_part CONSTANT bigint := 1099511627776; -- 2^40, of core.Receipt.NextPart
  c      record;
BEGIN
  SELECT ARRAY[l.score] || l.more_scores AS scores, ARRAY[l.data] || l.more_data AS data, ARRAY[l.meta] || l.more_meta AS meta
  INTO c FROM {schema}.claimed l WHERE l.ctid = p_at;
  IF p_position NOT BETWEEN 0 AND cardinality(c.data) - 1 OR cardinality(c.data) = 1 THEN
    RETURN false;
  END IF;

  c.scores := c.scores[:p_position] || c.scores[p_position + 2:];
  c.data := c.data[:p_position] || c.data[p_position + 2:];
  c.meta := c.meta[:p_position] || c.meta[p_position + 2:];

  UPDATE {schema}.claimed l SET number = l.number + c_part, retry_count = p_retry_count, recoveries = p_recoveries, begun = p_begun,
    slot = CASE WHEN p_position > 0 THEN l.slot END,
    score = c.scores[1], data = c.data[1], meta = c.meta[1],
    more_scores = nullif(c.scores[2:], '{}'), more_data = nullif(c.data[2:], '{}'), more_meta = nullif(c.meta[2:], '{}'),
    size = CASE WHEN cardinality(c.data) > 1 THEN (SELECT sum(octet_length(d)) FROM unnest(c.data) d) END
  WHERE l.ctid = p_at;
  RETURN true;
END {$};
