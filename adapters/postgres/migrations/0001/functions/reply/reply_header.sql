-- Returns the header of a reply, in which head is when the shard can next give a job, NULL if
-- never, remaining is how long the lease still lasts, in microseconds, and last is the number of
-- the last turn of the lease. status is ok, repeated for a turn that had been carried out before,
-- or why the call was refused: see status in errors.go. A turn may send further headers, whose
-- members add to these.
CREATE FUNCTION {schema}.reply_header(p_status text, p_now bigint DEFAULT 0, p_last bigint DEFAULT 0, p_remaining bigint DEFAULT 0,
  p_head bigint DEFAULT NULL, p_paused boolean DEFAULT false, p_lease_token bigint DEFAULT 0, p_lease_owner text DEFAULT '')
RETURNS json LANGUAGE sql STABLE AS {$}
  SELECT json_build_object(
    'status', p_status,
    'now', p_now,
    'last', p_last,
    'remaining', p_remaining,
    'head', p_head,
    'paused', p_paused,
    'lease_token', p_lease_token,
    'lease_owner', p_lease_owner)
{$};
