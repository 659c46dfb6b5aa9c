-- How a claimed job is settled (core.Settlement): the receipt of the claim, what counts, and what
-- becomes of the payloads. The store sends settlements as JSON objects with these names.
CREATE TYPE {schema}.settlement AS (
  id           text COLLATE "C",
  token        bigint,
  number       bigint,
  processed    boolean,
  failed       boolean,
  dispositions text,
  -- Of a job put back.
  time_rule    smallint,
  delay        bigint,
  retry_count  int,
  recoveries   int,
  failures     jsonb,
  slot         text,
  -- Of payloads that are buried.
  letter       {schema}.dead_letters,
  -- Of a done job that is recorded.
  past         {schema}.past,
  -- Of done payloads, also of a job that is not done, and of stale ones.
  mark         float8,
  stale        int
);
COMMENT ON COLUMN {schema}.settlement.dispositions IS 'A digit for each payload in order, a core.Disposition; the last one stands for the payloads after it as well';
COMMENT ON COLUMN {schema}.settlement.time_rule IS '0 the job is due after delay, 1 at its own time (core.PutBack.SameTime), 2 as 0, or earlier if a push since the claim is (core.PutBack.Awaits)';
COMMENT ON COLUMN {schema}.settlement.slot IS 'As jobs.slot';
COMMENT ON COLUMN {schema}.settlement.letter IS 'Its failures and its group; letter_of adds the rest';
COMMENT ON COLUMN {schema}.settlement.past IS 'Without shard, id, done_at and mark; NULL for none';
COMMENT ON COLUMN {schema}.settlement.mark IS 'To what the mark of the id is raised; NULL for none';
COMMENT ON COLUMN {schema}.settlement.stale IS 'How many stale payloads it drops; NULL for none';
