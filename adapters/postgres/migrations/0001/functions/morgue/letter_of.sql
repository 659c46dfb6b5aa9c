-- Returns the dead letter that a claimed job leaves by its settlement.
CREATE FUNCTION {schema}.letter_of(c {schema}.claimed, s {schema}.settlement, p_now bigint) RETURNS {schema}.dead_letters LANGUAGE plpgsql STABLE AS {$}
DECLARE
  d {schema}.dead_letters := s.letter;
BEGIN
  d.shard := c.shard;
  d.id := c.id;
  d.changed_at := p_now;
  d.tags := c.tags;
  RETURN d;
END {$};
