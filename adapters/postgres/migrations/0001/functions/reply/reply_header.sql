-- Returns the header of a reply. Arguments are named as the columns of the type reply.
CREATE FUNCTION {schema}.reply_header(p_status text, p_now bigint DEFAULT 0, p_last bigint DEFAULT 0, p_remaining bigint DEFAULT 0,
  p_head bigint DEFAULT NULL, p_paused boolean DEFAULT false, p_lease_token bigint DEFAULT 0, p_lease_owner text DEFAULT '')
RETURNS {schema}.reply LANGUAGE sql IMMUTABLE AS {$}
  SELECT ROW('h', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -- all before status
    p_status, p_paused, p_last, p_now, p_remaining, p_head, p_lease_token, p_lease_owner)::{schema}.reply
{$};
