-- What an operator's step did on one shard: the status, the clock, how many it handled, with how
-- many of those that it names it has dealt, NULL for all or if it names none, whether
-- more of its kind are left, and the earliest PerformAt of what it made due, if anything.
CREATE TYPE {schema}.step_reply AS (
  status   text,
  now      bigint,
  handled  int,
  reached  int,
  more     boolean,
  earliest bigint
);
