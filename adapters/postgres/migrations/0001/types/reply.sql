-- One row of the reply to an acquire or a turn. kind is its kind: 'h' the header, 'c' a claim, 'o'
-- an orphan, 'x' a cancelled claim, 'd' a cancelled claim whose job is dropped when it ends; and
-- places of the request, from 1: 's' settlements that were skipped since their job is not claimed,
-- 'f' settlements that were deferred since a caller's transaction has locked their job, 'p' parts
-- that were skipped, 'n' claims that could not be marked as begun. Columns that a kind does not
-- have are NULL.
CREATE TYPE {schema}.reply AS (
  -- A new column goes to the end of its kind. It changes the ROW or the list of NULLs of each file
  -- in functions/reply, the list of NULLs in turn_fast.sql, and in reply.go the numbers of columns
  -- and the columns of its kind. A column of the header is an argument of reply_header.sql, which
  -- turn.sql, turn_fast.sql (twice), repeat_turn.sql and acquire.sql call; turn.go reads it.
  kind        "char",
  -- Of claims, orphans and cancelled claims.
  id          text,
  token       bigint,
  number      bigint,
  -- Of claims and orphans.
  perform_at  bigint,
  first_push  bigint,
  retry_count int,
  recoveries  int,
  begun       boolean,
  error       text,
  score       double precision,
  data        bytea,
  meta        bytea,
  more_scores double precision[],
  more_data   bytea[],
  more_meta   bytea[],
  -- Of places of the request.
  places      int[],
  -- Of the header.
  status      text,
  paused      boolean,
  last        bigint,
  now         bigint,
  remaining   bigint,
  head        bigint,
  lease_token bigint,
  lease_owner text
);
COMMENT ON COLUMN {schema}.reply.token IS 'With number: the receipt of the claim';
COMMENT ON COLUMN {schema}.reply.status IS 'ok, repeated for a turn that had been carried out before, or why the call was refused: see status in errors.go';
COMMENT ON COLUMN {schema}.reply.last IS 'The number of the last turn of the lease';
COMMENT ON COLUMN {schema}.reply.remaining IS 'How long the lease still lasts, in microseconds';
COMMENT ON COLUMN {schema}.reply.head IS 'When the shard can next give a job; NULL if never';
