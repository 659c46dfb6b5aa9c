-- Queued jobs. A row has one of the job's payloads: the one that came first, or none once a claim
-- has taken that payload and left others. Rows come and go with each job. The table is vacuumed at
-- full speed and not shrunk: while an autovacuum holds it for long, rows that die in it enlarge the
-- indexes for good.
CREATE TABLE {schema}.jobs (
  perform_at        bigint NOT NULL,
  first_push        bigint NOT NULL,
  score             double precision NOT NULL,
  low               double precision NOT NULL DEFAULT '-Infinity',
  shard             int NOT NULL,
  retry_count       int NOT NULL,
  recoveries        int NOT NULL,
  has_more          boolean NOT NULL,
  parked            boolean NOT NULL DEFAULT false,
  id                text COLLATE "C" NOT NULL,
  data              bytea,
  meta              bytea,
  failures          jsonb,
  tags              text NOT NULL DEFAULT '',
  slot              text,
  prior_retry_count int,
  PRIMARY KEY (shard, id),
  CONSTRAINT jobs_payload CHECK (data IS NOT NULL OR has_more),
  -- Within 0 and core.MaxInstant; NaN is larger than all.
  CONSTRAINT jobs_times CHECK (perform_at BETWEEN 0 AND 9007199254740992 AND first_push BETWEEN 0 AND 9007199254740992),
  CONSTRAINT jobs_score CHECK (score > '-Infinity' AND score < 'Infinity')
) WITH (autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
-- Claims read only jobs that are not parked, so they don't meet jobs that can't be claimed.
CREATE INDEX jobs_time ON {schema}.jobs (shard, parked, perform_at, id);
CREATE INDEX retrying_time ON {schema}.jobs (shard, perform_at, id) WHERE retry_count >= 0;
CREATE INDEX retrying_id ON {schema}.jobs (shard, id) WHERE retry_count >= 0;
CREATE INDEX retrying_count ON {schema}.jobs (shard, retry_count, id) WHERE retry_count >= 0;
COMMENT ON COLUMN {schema}.jobs.retry_count IS 'core.Job.RetryCount: -1 before the first failure';
COMMENT ON COLUMN {schema}.jobs.data IS 'NULL if all payloads of the job are in the table payloads; then score and meta say nothing';
COMMENT ON COLUMN {schema}.jobs.low IS 'No payload of the job in the table payloads has a smaller score: claims need not pass over those that are gone';
COMMENT ON COLUMN {schema}.jobs.has_more IS 'Whether the table payloads may hold more of this job';
COMMENT ON COLUMN {schema}.jobs.parked IS 'Whether a turn has passed over the job since its id is claimed; false for the others of such ids';
COMMENT ON COLUMN {schema}.jobs.failures IS 'The last failures, the newest first, each as {"at", "node", "text"}; NULL if there is none';
COMMENT ON COLUMN {schema}.jobs.tags IS 'core.Tags: in order of their bytes, with chr(31) between them';
COMMENT ON COLUMN {schema}.jobs.slot IS 'The key of the rate whose slot perform_at is, so that no push changes it; NULL if the job does not wait for a slot';
COMMENT ON COLUMN {schema}.jobs.prior_retry_count IS 'retry_count before the last merge, by which an upsert sees what it met; NULL if nothing has merged into the job';
