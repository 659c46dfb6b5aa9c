-- Returns a claimed row as a reply of a kind: 'c' a claim, 'o' an orphan.
CREATE FUNCTION {schema}.reply_claim(p_kind "char", p_row {schema}.claimed) RETURNS {schema}.reply LANGUAGE sql IMMUTABLE AS {$}
  SELECT ROW(p_kind, p_row.id, p_row.token, p_row.number, p_row.perform_at, p_row.first_push, p_row.retry_count, p_row.recoveries,
    p_row.begun IS TRUE, p_row.error, p_row.score, p_row.data, p_row.meta, p_row.more_scores, p_row.more_data, p_row.more_meta,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::{schema}.reply -- all from places on
{$};
