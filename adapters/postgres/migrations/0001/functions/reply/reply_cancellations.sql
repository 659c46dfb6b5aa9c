-- Returns the cancelled claims of a shard as replies, of the kind 'x' or 'd', in order of id.
CREATE FUNCTION {schema}.reply_cancellations(p_shard int) RETURNS SETOF {schema}.reply LANGUAGE sql STABLE AS {$}
  SELECT r.* FROM {schema}.claimed c,
    LATERAL (SELECT (ROW(CASE WHEN c.cancel_drop THEN 'd' ELSE 'x' END, c.id, c.token, c.number,
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::{schema}.reply).*) r
  WHERE c.shard = p_shard AND (c.recoveries > 1 OR c.cancel_drop IS NOT NULL) AND c.cancel_drop IS NOT NULL
  ORDER BY c.id
{$};
