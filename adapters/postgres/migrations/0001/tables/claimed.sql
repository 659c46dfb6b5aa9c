-- Claimed jobs with their payloads in order: the first one beside the arrays of the others.
-- Deleting a row settles the job; a transaction that holds the row's lock may delete it.
CREATE TABLE {schema}.claimed (
  token         bigint NOT NULL,
  number        bigint NOT NULL,
  perform_at    bigint NOT NULL,
  first_push    bigint NOT NULL,
  since         bigint NOT NULL,
  score         double precision NOT NULL,
  shard         int NOT NULL,
  retry_count   int NOT NULL,
  recoveries    int NOT NULL,
  size          bigint,
  id            text COLLATE "C" NOT NULL,
  node          text NOT NULL,
  owner         text NOT NULL,
  failures      jsonb,
  tags          text NOT NULL DEFAULT '',
  slot          text,
  data          bytea NOT NULL,
  meta          bytea,
  more_scores   double precision[],
  more_data     bytea[],
  more_meta     bytea[],
  cancel_drop   boolean,
  begun         boolean,
  handed_token  bigint,
  handed_number bigint,
  PRIMARY KEY (shard, id)
) WITH (fillfactor = 90, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
-- Short-lived values are not worth compressing.
ALTER TABLE {schema}.claimed ALTER more_data SET STORAGE EXTERNAL;
-- The few rows that turns must look for: jobs that run alone, from 2 recoveries on, which is
-- core.AloneRecoveries, and cancelled ones. Queries repeat the condition word for word.
CREATE INDEX claimed_exceptional ON {schema}.claimed (shard, id) WHERE recoveries > 1 OR cancel_drop IS NOT NULL;
COMMENT ON COLUMN {schema}.claimed.token IS 'With number: the receipt, the lease and turn that claimed the job';
COMMENT ON COLUMN {schema}.claimed.size IS 'The bytes of all payloads; NULL where data is the only one';
COMMENT ON COLUMN {schema}.claimed.since IS 'When the job was claimed';
COMMENT ON COLUMN {schema}.claimed.failures IS 'As jobs.failures; and tags and slot likewise';
COMMENT ON COLUMN {schema}.claimed.cancel_drop IS 'NULL if the job is not cancelled, else whether it is dropped when it ends';
COMMENT ON COLUMN {schema}.claimed.begun IS 'Whether a turn has marked the job as begun; NULL is no, as it is for every job that was never recovered';
COMMENT ON COLUMN {schema}.claimed.handed_token IS 'With handed_number: the lease and turn that handed the job over, number 0 for its acquire';
