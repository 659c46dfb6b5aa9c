-- One row of the reply to an acquire or a turn: kind 'h' is the header, 'c' a claim, 'o' an
-- orphan, 'x' a cancellation. Columns that a kind does not name are NULL.
CREATE TYPE {schema}.reply AS (
  kind        "char",
  -- Of claims, orphans and cancellations.
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
  -- Of cancellations.
  drop_job    boolean,
  -- Of the header.
  status      text,
  repeated    boolean,
  paused      boolean,
  last        bigint,
  now         bigint,
  remaining   bigint,
  head        bigint,
  lease_token bigint,
  lease_owner text,
  skipped     int[],
  deferred    int[],
  not_begun   int[]
);
COMMENT ON COLUMN {schema}.reply.token IS 'With number: the receipt of the claim';
COMMENT ON COLUMN {schema}.reply.drop_job IS 'Whether the cancelled job is dropped when it ends';
COMMENT ON COLUMN {schema}.reply.status IS 'ok, or why the call was refused: see status in errors.go';
COMMENT ON COLUMN {schema}.reply.repeated IS 'Whether the turn had been carried out before';
COMMENT ON COLUMN {schema}.reply.last IS 'The number of the last turn of the lease';
COMMENT ON COLUMN {schema}.reply.remaining IS 'How long the lease still lasts, in microseconds';
COMMENT ON COLUMN {schema}.reply.head IS 'When the shard can next give a job; NULL if never';
COMMENT ON COLUMN {schema}.reply.skipped IS 'Settlements of what is not claimed, by place in the request from 1';
COMMENT ON COLUMN {schema}.reply.deferred IS 'Settlements of what a caller''s transaction has locked, likewise';
COMMENT ON COLUMN {schema}.reply.not_begun IS 'Claims that could not be marked as begun, likewise';
