-- Server processes that run, one row each. A row is deleted an hour after it has run out: until
-- then a clock that steps back may bring it back.
CREATE TABLE {schema}.nodes (
  owner   text COLLATE "C" PRIMARY KEY,
  name    text COLLATE "C" NOT NULL,
  host    text NOT NULL,
  pid     bigint NOT NULL,
  lanes   bigint NOT NULL,
  queues  text[] NOT NULL,
  started bigint NOT NULL,
  expires bigint NOT NULL
) WITH (fillfactor = 50);
