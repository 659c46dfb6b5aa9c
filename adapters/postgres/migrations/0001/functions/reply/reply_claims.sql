-- Returns claimed jobs of a shard as replies of a kind: 'c' a claim, 'o' an orphan. It is inlined
-- into the calling query, which makes no row of the type reply: payloads that are stored aside
-- stay there until they are sent. It looks up each id by itself: to a planner that believes in few
-- rows, = ANY may be a filter, and the scan passes all dead rows of the shard.
CREATE FUNCTION {schema}.reply_claims(p_kind "char", p_shard int, p_ids text[]) RETURNS SETOF {schema}.reply LANGUAGE sql STABLE AS {$}
  SELECT p_kind, c.id::text, c.token, c.number, c.perform_at, c.first_push, c.retry_count, c.recoveries,
    c.begun IS TRUE, c.error, c.score, c.data, c.meta, c.more_scores, c.more_data, c.more_meta,
    -- All from places on.
    NULL::int[], NULL::text, NULL::boolean, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
  FROM unnest(p_ids) u (id), LATERAL (SELECT * FROM {schema}.claimed c WHERE c.shard = p_shard AND c.id = u.id LIMIT 1) c
{$};
