-- Returns a header with the cancelled claims of a shard, in order of id, or NULL if there is no such
-- claim. drop is whether the job is dropped when it ends.
CREATE FUNCTION {schema}.reply_cancellations(p_shard int) RETURNS json LANGUAGE sql STABLE AS {$}
  SELECT CASE WHEN count(*) > 0 THEN json_build_object('cancellations', json_agg(
    json_build_object('id', c.id, 'token', c.token, 'number', c.number, 'drop', c.cancel_drop) ORDER BY c.id)) END
  FROM {schema}.claimed c
  WHERE c.shard = p_shard AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL) AND c.cancel_drop IS NOT NULL
{$};
