-- Payloads that callers' transactions push, put back and bury, one row each, until the shard's next
-- turn, acquire or look merges them in the order of seq; and notes of early jobs. It has no unique
-- key, so no session waits for a transaction that inserts. Any payload on its way into the queue or
-- the morgue is a row of this type (new_arrival).
CREATE TABLE {schema}.inbox (
  shard       int NOT NULL,
  tx          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  seq         bigint GENERATED ALWAYS AS IDENTITY,
  kind        {schema}.arrival_kind NOT NULL,
  rule        smallint NOT NULL DEFAULT 0,
  rule_limit  bigint NOT NULL DEFAULT 0,
  perform_at  bigint NOT NULL DEFAULT 0,
  first_push  bigint NOT NULL DEFAULT 0,
  score       double precision NOT NULL DEFAULT 0,
  retry_count int NOT NULL DEFAULT -1,
  recoveries  int NOT NULL DEFAULT 0,
  id          text COLLATE "C" NOT NULL DEFAULT '',
  failures    jsonb,
  tags        text NOT NULL DEFAULT '',
  slot        text,
  data        bytea NOT NULL DEFAULT '',
  meta        bytea,
  once        bigint,
  once_key    uuid,
  letter      {schema}.dead_letters,
  -- Within 0 and core.MaxInstant; NaN is larger than all.
  CONSTRAINT inbox_times CHECK (perform_at BETWEEN 0 AND 9007199254740992 AND first_push BETWEEN 0 AND 9007199254740992
    AND (letter).changed_at BETWEEN 0 AND 9007199254740992),
  CONSTRAINT inbox_score CHECK (score > '-Infinity' AND score < 'Infinity'),
  CONSTRAINT inbox_letter CHECK (kind <> 'buried' OR (letter).id IS NOT NULL)
);
CREATE INDEX inbox_shard ON {schema}.inbox (shard, tx, seq);
-- The ids that wait there to be merged into the queue. The shard is an expression, so looks for an
-- id can't use inbox_shard: beside a million dead rows the table is empty by its statistics, and
-- then any index looks as good as another.
CREATE INDEX inbox_id ON {schema}.inbox ((shard + 0), id, tx, seq) WHERE kind IN ('push', 'put_back');
-- And the others, separately, so that claims don't read them.
CREATE INDEX inbox_settled ON {schema}.inbox ((shard + 0), id, tx, seq) WHERE kind IN ('buried', 'freed');
COMMENT ON COLUMN {schema}.inbox.rule IS 'core.RuleKind: 0 Keep, 1 Earliest, 2 Debounce';
COMMENT ON COLUMN {schema}.inbox.rule_limit IS 'How far Debounce may move a job away from its first push';
COMMENT ON COLUMN {schema}.inbox.perform_at IS 'Of a job, as jobs.perform_at. The columns of jobs have their default values where a payload is buried';
COMMENT ON COLUMN {schema}.inbox.once IS 'For how long the entry is accepted once, in microseconds; NULL if it always is; and once_key is its key, as in once';
COMMENT ON COLUMN {schema}.inbox.letter IS 'The dead letter that the payload is buried in; NULL of others. A migration that adds a column to dead_letters has to set it here too';
