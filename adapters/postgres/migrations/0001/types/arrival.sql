-- One payload on its way into the queue or the morgue, with its job's fields. perform_at of a
-- dead letter is its ChangedAt.
CREATE TYPE {schema}.arrival AS (
  kind        {schema}.arrival_kind,
  rule        smallint,
  rule_limit  bigint,
  perform_at  bigint,
  first_push  bigint,
  score       double precision,
  retry_count int,
  recoveries  int,
  id          text COLLATE "C",
  error       text,
  data        bytea,
  meta        bytea,
  grp         text COLLATE "C"
);
COMMENT ON COLUMN {schema}.arrival.rule IS 'core.RuleKind: 0 Keep, 1 Earliest, 2 Debounce';
COMMENT ON COLUMN {schema}.arrival.rule_limit IS 'How far Debounce may move a job away from its first push';
COMMENT ON COLUMN {schema}.arrival.error IS 'As jobs.error; of a push only its tags';
COMMENT ON COLUMN {schema}.arrival.grp IS 'The group of a dead letter; NULL of others';
