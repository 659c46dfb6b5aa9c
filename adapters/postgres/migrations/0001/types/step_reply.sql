-- The result of an operator's step on one shard: the status, the clock, how many it handled, how
-- many of the named ones it has dealt with (NULL for all or if it names none), whether more of its
-- kind are left, the earliest PerformAt of jobs that it made due, if any, and how many stale dead
-- letters it has left alone, NULL for none.
CREATE TYPE {schema}.step_reply AS (
  status   text,
  now      bigint,
  handled  int,
  reached  int,
  more     boolean,
  earliest bigint,
  stale    int
);
