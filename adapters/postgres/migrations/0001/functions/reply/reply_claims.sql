-- Returns claimed jobs of a shard as rows of a reply. It is inlined into the calling query, which
-- makes no row of the type reply: payloads that are stored aside stay there until they are sent. It
-- looks up each id by itself: to a planner that believes in few rows, = ANY may be a filter, and
-- the scan passes all dead rows of the shard.
CREATE FUNCTION {schema}.reply_claims(p_shard int, p_ids text[]) RETURNS SETOF {schema}.reply LANGUAGE sql STABLE AS {$}
  SELECT NULL::json, c.*
  FROM unnest(p_ids) u (id), LATERAL (SELECT * FROM {schema}.claimed c WHERE c.shard = p_shard AND c.id = u.id LIMIT 1) c
{$};
