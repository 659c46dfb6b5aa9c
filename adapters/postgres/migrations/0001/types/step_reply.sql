-- What an operator's step did on one shard: the status, the clock, how many it handled, whether
-- more of its kind are left, and the earliest PerformAt of what it made due, if anything.
CREATE TYPE {schema}.step_reply AS (
  status   text,
  now      bigint,
  handled  int,
  more     boolean,
  earliest bigint
);
